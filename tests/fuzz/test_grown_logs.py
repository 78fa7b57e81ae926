"""Random logs whose lines get more keys, and directories with links: nothing is lost in silence, or comes twice."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fuzz.budget import Fuzz
from hypothesis import strategies as st

from flinkcore.log.files.log_files import discover_files
from flinkcore.log.formats import text_formats
from flinkcore.log.sources.log_sources import LogFiles

NUMBERS = st.integers(-5, 5)


def objects(names: tuple[str, ...], levels: int) -> st.SearchStrategy[dict[str, Any]]:
    """Objects in which a key has numbers, or else objects, whatever the others have."""
    kinds: dict[Any, Any] = dict.fromkeys(names, NUMBERS)
    if levels:
        kinds["inner"] = objects(("c", "é"), levels - 1)
    return st.fixed_dictionaries({}, optional=kinds)


def known_paths(value: Any, path: tuple[str, ...] = ()) -> set[tuple[str, ...]]:
    """Where a line has values that are not null."""
    if isinstance(value, dict):
        return set[tuple[str, ...]]().union(*(known_paths(each, (*path, key)) for key, each in value.items()))
    return set() if value is None else {path}


@pytest.mark.fuzz_share(0.2)
def test_a_key_of_json_is_read_or_reported(fuzz: Fuzz, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_formats, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text_formats, "SAMPLED_BYTES", 50)

    def check(files: list[list[dict[str, Any]]], ascii: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number, rows in enumerate(files):
                lines = [json.dumps({"ts": 1, **row}, ensure_ascii=ascii) + "\n" for row in rows]
                (Path(folder) / f"{number}.json").write_text("".join(lines), encoding="utf-8")
            warnings: list[str] = []
            chunks = LogFiles.discover(folder).chunks(1)
            batches = [batch for chunk in chunks for batch in chunk.read(None, 10, (), warnings)]
        found = [row for batch in batches for row in batch.to_pylist()]
        written = [{"ts": 1, **row} for rows in files for row in rows]
        assert len(found) == len(written)
        told = "\n".join(warnings)
        for row, read in zip(written, found, strict=True):
            for path in known_paths(row) - known_paths(read):
                outer = {".".join(path[:end]) for end in range(1, len(path) + 1)}
                assert any(repr(name) in told for name in outer) or "times others" in told, (path, told)
        fuzz.count("reported" if told else "read")

    row = objects(("a", "größe", 'q"', "x.y"), 2)
    fuzz.run(
        check,
        examples=30,
        files=st.lists(st.lists(row, min_size=1, max_size=8), min_size=1, max_size=20),
        ascii=st.booleans(),
    )


FOLDERS = ["log", "log/a", "log/a/b", "log/c", "far", "far/d"]


@pytest.mark.fuzz_share(0.1)
def test_a_file_is_found_once_whatever_links_lead_to_it(fuzz: Fuzz) -> None:
    def check(links: list[tuple[str, str, bool]], pattern: str) -> None:
        with tempfile.TemporaryDirectory() as made:
            root = Path(os.path.realpath(made))
            for folder in FOLDERS:
                (root / folder).mkdir()
                (root / folder / "f.txt").touch()
            for number, (place, target, is_file) in enumerate(links):
                (root / place / f"link{number}.txt").symlink_to(root / target / ("f.txt" if is_file else ""))
            found = [os.path.realpath(file.name) for file in discover_files(f"{root}/log{pattern}")]
            assert len(set(found)) == len(found)
            own = {str(root / folder / "f.txt") for folder in FOLDERS if folder.startswith("log")}
            assert own <= set(found)
            assert set(found) - own <= {str(root / "far" / "f.txt"), str(root / "far" / "d" / "f.txt")}
            fuzz.count(f"{len(found)} files")

    link = st.tuples(st.sampled_from(FOLDERS), st.sampled_from([*FOLDERS, ""]), st.booleans()).filter(
        lambda link: link[1] or not link[2]
    )
    fuzz.run(
        check,
        examples=30,
        links=st.lists(link, max_size=6),
        pattern=st.sampled_from(["", "/**", "/**/*.txt"]),
    )
