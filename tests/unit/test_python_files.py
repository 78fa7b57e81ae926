"""Files of modules that a program adds to its jobs."""

import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SourceError


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.py", None, "there is no Python file .*missing.py"),
        ("notes.txt", b"", "notes.txt brings no Python modules: take a .py file, a folder, or an archive"),
        ("damaged.zip", b"PK and no more", "damaged.zip is no zip archive, or is damaged"),
        ("damaged.whl", b"", "damaged.whl is no zip archive, or is damaged"),
    ],
)
def test_what_brings_no_modules_is_refused(
    tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=told):
        StreamExecutionEnvironment.get_execution_environment().add_python_file(tmp_path / name)


@pytest.mark.parametrize("kind", ["module", "folder", "archive"])
def test_modules_that_were_added_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    name = f"added_as_{kind}"
    module = tmp_path / f"{name}.py"
    module.write_text("answer = 42")
    added = {"module": module, "folder": tmp_path, "archive": tmp_path / "archive.zip"}[kind]
    if kind == "archive":
        with ZipFile(added, "w") as archive:
            archive.write(module, module.name)
        module.unlink()
    StreamExecutionEnvironment.get_execution_environment().add_python_file(added)
    try:
        assert __import__(name).answer == 42
    finally:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("path", [None, 3, b"module.py"])
def test_what_is_no_path_of_a_module_is_refused(path: object) -> None:
    with pytest.raises(ConfigurationError, match="a Python file is given by its path, not"):
        StreamExecutionEnvironment().add_python_file(path)  # type: ignore[arg-type]
