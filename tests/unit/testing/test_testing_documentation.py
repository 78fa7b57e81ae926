"""What the documentation of flinkcore.testing shows is what happens."""

import doctest
import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

import flinkcore.testing

FOLDER = Path(flinkcore.testing.__file__).parent
README = (Path(__file__).parents[3] / "flinkcore" / "testing" / "README.md").read_text(encoding="utf-8")
MODULES = [
    importlib.import_module(f"flinkcore.testing.{path.stem}") for path in sorted(FOLDER.glob("[a-z]*.py"))
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_are_right(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_the_first_example_of_the_readme_passes() -> None:
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    names: dict[str, object] = {}
    exec(code, names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    assert callable(test)
    test()


def test_the_readme_names_what_exists() -> None:
    read = re.sub(r"<!-- setup\n.*?-->", "", README, flags=re.DOTALL)
    called = set(re.findall(r"[`. ](\w+)\(", read.split("## Pytest plugin")[0]))
    places = (
        flinkcore.testing,
        flinkcore.testing.KeyedOneInputStreamOperatorTestHarness,
        flinkcore.testing.KeyedTwoInputStreamOperatorTestHarness,
        flinkcore.testing.BroadcastOperatorTestHarness,
        flinkcore.testing.SourceFunctionTestHarness,
        flinkcore.testing.OperatorSubtaskState,
    )
    of_the_example = {"FraudDetector", "Transaction", "Row", "MyOperator", "WindowOperation", "of_minutes"}
    of_the_example |= {"test_a_large_transaction_after_a_small_one_raises_an_alert"}
    assert len(called) > 20
    assert {
        name for name in called - of_the_example if not any(hasattr(place, name) for place in places)
    } == set()
