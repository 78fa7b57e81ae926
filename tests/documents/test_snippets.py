"""Every block of code in README.md, docs/ and the pages of packages runs, and shows what it gives."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from equipment.document_blocks import ROOT, Block, blocks_of, is_shown, needs_spark, outputs_of
from equipment.spark_sessions import spark_session

PAGES = [
    *(ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))),
    *(ROOT / "flinkcore" / "datastream" / "README.md", ROOT / "flinkcore" / "testing" / "README.md"),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
TEXTS = {name: page.read_text(encoding="utf-8") for name, page in zip(NAMES, PAGES, strict=True)}
NOT_RUN = [
    (name, block.line, block.reason)
    for name, text in TEXTS.items()
    for block in blocks_of(text)
    if block.reason is not None
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """The session of all pages."""
    pytest.importorskip("pyspark")
    with spark_session("local[2]", spark_sql_shuffle_partitions="2") as session:
        yield session


@pytest.fixture(autouse=True)
def _modules_of_pages_are_theirs() -> Iterator[None]:
    """Take programs that a page has written, such as jobs.py, from the place of modules of the same name."""
    modules, path = dict(sys.modules), sys.path[:]
    yield
    sys.modules.update(modules)
    sys.path[:] = path


def run(name: str, names: dict[str, Any]) -> None:
    """Run a page, and compare what it shows."""
    for block, output in outputs_of(TEXTS[name], name, names):
        assert is_shown(block.text, output), f"{name}:{block.line} shows\n{block.text}\nand prints\n{output}"


@pytest.mark.parametrize("name", [name for name in NAMES if not needs_spark(TEXTS[name])])
def test_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(name, {})


@pytest.mark.parametrize("name", [name for name in NAMES if needs_spark(TEXTS[name])])
def test_a_page_runs_on_spark(name: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(name, {"spark": spark})


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    assert len(NOT_RUN) <= 7, NOT_RUN


def test_blocks_have_a_kind_that_is_run_or_is_no_code() -> None:
    kinds = {(name, block.kind) for name, text in TEXTS.items() for block in blocks_of(text)}
    known = {"python", "sh", "text", "setup", "toml", "java", "sql", "drawing"}
    assert {(name, kind) for name, kind in kinds if kind not in known} == set()


def test_what_a_page_shows_is_compared_line_by_line() -> None:
    assert is_shown("a\n...\nd", "a\nb\nc\nd\n")
    assert is_shown("a\n...", "a\nb")
    assert not is_shown("a\n...\nd", "b\nc\nd\n")
    assert not is_shown("a", "a\nb")
    assert not is_shown("a\nc", "a\nb\nc")


def test_a_page_is_one_program_of_python_and_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = (
        "<!-- setup\nseen = ['setup']\n-->\n```python\nprint(seen)\nseen.append(1)\n```\n\n```text\n['setup']\n```\n"
        "```python\n# not run: never\nraise ValueError\n```\n```text\nnot compared\n```\n"
        "```sh\npip install 'flinkcore[report]'\necho one \\\n  two\n"
        "```\n```text\none two\n```\n"
    )
    shown = [(block.text, output) for block, output in outputs_of(page, "page", {})]
    assert shown == [("['setup']\n", "['setup']\n"), ("one two\n", "one two\n")]
    assert [block.reason for block in blocks_of(page) if block.reason] == ["never"]


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("```python\nundefined\n```\n", "undefined"),
        ("```sh\nfalse\n```\n", "false"),
        ("```sh\npip install 'flinkcore[nothing]'\n```\n", "no extra"),
        ("```sh\nflinkcore compare none.parquet none.parquet --key a\n```\n", "exit status 2"),
    ],
)
def test_a_block_that_fails_is_an_error(
    page: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match=error):
        list(outputs_of(page, "page", {}))


def test_errors_name_the_line_of_the_page() -> None:
    block = blocks_of("text\n\n```python\n1\n```\n")[0]
    assert block == Block("python", "1\n", 4, (16, 18))
