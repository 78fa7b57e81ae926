"""What the documents name exists: links, files and folders, classes, options of tests."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "flinkcore"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
        *PACKAGE.rglob("README.md"),
        *(ROOT / "tests").rglob("README.md"),
        ROOT / "benchmarks" / "README.md",
    ]
)
FOR_DEVELOPERS = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md", ROOT / "docs" / "glossary.md"]
SOURCES = [*PACKAGE.rglob("*.py"), *(ROOT / "_native").glob("*.pyx"), *(ROOT / "tests").rglob("*.py")]


def code_of(page: Path) -> list[str]:
    """Inline code, and the lines of blocks."""
    blocks = page.read_text(encoding="utf-8").split("```")
    return [code for text in blocks[::2] for code in re.findall(r"`([^`\n]+)`", text)] + [
        line for block in blocks[1::2] for line in block.splitlines()[1:]
    ]


def missing_paths(page: Path) -> list[str]:
    """Files and folders of the project that a page names and that are not there."""
    tops = "flinkcore|_native|tests|benchmarks|docs"
    named = {
        path
        for code in code_of(page)
        for path in re.findall(rf"(?<![\w./-])((?:{tops})/[\w./]*\w|\.ci/[\w.]*\w|\w+\.(?:md|toml))", code)
    }
    # Words in capitals stand for names of one's own.
    return sorted(path for path in named if not re.search("NAME|KIND", path) and not (ROOT / path).exists())


def missing_names(page: Path, defined: set[str]) -> list[str]:
    """Names with an inner capital letter that a page has in inline code or a drawing, and no class has."""
    named = {name for code in code_of(page) for name in re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)+\b", code)}
    return sorted(named - defined - {"DataFrame"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("http")]
    assert [target for target in local if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", FOR_DEVELOPERS, ids=lambda page: page.name)
def test_files_and_folders_that_developers_are_sent_to_are_there(page: Path) -> None:
    assert missing_paths(page) == []


def installed_from_an_index(text: str) -> list[str]:
    """Return the commands of a page that look for flinkcore on an index, where it is not.

    Extras other than that of Spark are added to a flinkcore that is installed, which needs no index.
    """
    commands = re.findall(r"pip install [^`\n&]*", text)
    first = re.compile(r"(?<![\w/.-])flinkcore(?:\[(?:spark|demo|test|dev)\])?(?![\[\w/.-])")
    return [command for command in commands if first.search(command) and "--find-links" not in command]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_flinkcore_is_installed_from_where_it_can_be_had(page: Path) -> None:
    assert installed_from_an_index(page.read_text(encoding="utf-8")) == []


def test_commands_that_find_no_flinkcore_are_seen() -> None:
    for requirement in ("flinkcore", "'flinkcore[spark]' venv-pack", "-q flinkcore cython"):
        assert installed_from_an_index(f"first `pip install {requirement}`, then") != []
    for requirement in (
        ".",
        "'.[spark]'",
        "--find-links dist flinkcore",
        "'flinkcore[delta]'",
        "flinkcore/examples/x",
    ):
        assert installed_from_an_index(f"first `pip install {requirement}`, then") == []


def test_classes_in_the_architecture_are_defined() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCES)
    defined = set(re.findall(r"^(?:cdef )?class (\w+)", sources, re.MULTILINE))
    assert missing_names(ROOT / "docs" / "architecture.md", defined) == []


def test_options_of_commands_are_known(pytestconfig: pytest.Config) -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in FOR_DEVELOPERS)
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    options = set(re.findall(r"pytest [^\n`]*(--(?:fuzz|golden)[a-z-]*)", text))
    assert {"--golden", "--golden-savepoints", "--golden-sql", "--fuzz-seconds", "--fuzz-seed"} == options
    assert all(f'"{option}"' in conftest for option in options)
    settings = set(re.findall(r"FLINKCORE_[A-Z_]+", text))
    known = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob(".ci/*"))
    known += "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks").glob("*.py"))
    known += (ROOT / "tests" / "packaging" / "test_sanitizers.py").read_text(encoding="utf-8")
    assert [name for name in settings if name not in known] == []


def test_the_figures_of_nexmark_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    nexmark_page = importlib.import_module("benchmarks.nexmark_page")
    text = (ROOT / "docs" / "nexmark.md").read_text(encoding="utf-8")
    section = nexmark_page.section(nexmark_page.sources_of(text))
    written = importlib.import_module("benchmarks.figures").with_section(text, section)
    assert written == text, "write them by: python -m benchmarks.nexmark_page"


def test_the_figures_of_large_logs_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    scale_page = importlib.import_module("benchmarks.scale_page")
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    section = scale_page.section(scale_page.source_of(text))
    written = importlib.import_module("benchmarks.figures").with_section(text, section)
    assert section in text
    assert written == text, "write them by: python -m benchmarks.scale_page"


def test_what_is_not_there_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "see `tests/unit/test_nothing.py` and `flinkcore/spark`\n```\nUnknownClass ─▶ Known\n```\n"
    )
    assert missing_paths(page) == ["tests/unit/test_nothing.py"]
    assert missing_names(page, {"Known"}) == ["UnknownClass"]


@pytest.mark.parametrize("name", ["README.md", "benchmarks/README.md"])
def test_the_numbers_of_a_readme_are_those_of_the_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT)
    readme = importlib.import_module("benchmarks.readme")
    assert readme.SECTIONS[ROOT / name]() in (ROOT / name).read_text(encoding="utf-8"), (
        "write it by: python -m benchmarks.readme"
    )
