"""The notebooks of the examples run, and show what they print."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from equipment.document_blocks import is_shown

import flinkcore.examples

NOTEBOOKS = sorted(Path(flinkcore.examples.__file__).parent.glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_prints_what_it_shows(notebook: Path) -> None:
    names: dict[str, Any] = {}
    cells = [
        cell
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    ]
    for number, cell in enumerate(cells, 1):
        with contextlib.redirect_stdout(io.StringIO()) as printed, patch("os.cpu_count", return_value=1):
            exec(compile("".join(cell["source"]), f"{notebook.name}, cell {number}", "exec"), names)
        (output,) = cell["outputs"]
        assert is_shown("".join(output["text"]), printed.getvalue()), printed.getvalue()


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS
