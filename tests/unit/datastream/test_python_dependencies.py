"""What functions need beside the program: modules, archives, requirements, an interpreter."""

import ensurepip
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pyarrow as pa
import pytest

from flinkcore.common import Encoder, WatermarkStrategy
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from flinkcore.datastream.functions import KeyedProcessFunction, MapFunction
from flinkcore.errors import ConfigurationError, SourceError, UserCodeError


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.py", None, "there is no Python file .*missing.py"),
        ("notes.txt", b"", "notes.txt brings no Python modules. Take a .py file, a folder, or an archive"),
        ("damaged.zip", b"PK and no more", "damaged.zip is not a zip archive, or is damaged"),
        ("damaged.whl", b"", "damaged.whl is not a zip archive, or is damaged"),
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


def packed(folder: Path, name: str, **files: str) -> Path:
    """An archive of files in `data`, one of which can be run."""
    source = folder / f"files of {name}" / "data"
    source.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (source / file).write_text(text)
    tool = source / "tool"
    tool.write_text("#!/bin/sh\necho tool")
    tool.chmod(0o755)
    archive = folder / name
    if name.endswith(".zip"):
        with ZipFile(archive, "w") as packing:
            for path in source.iterdir():
                packing.write(path, f"data/{path.name}")
    else:
        with tarfile.open(archive, "w:gz") as packing_tar:
            packing_tar.add(source, "data")
    return archive


def read_by_functions(env: StreamExecutionEnvironment, *paths: str) -> list[Any]:
    """What a function reads as it is opened, and for an element."""

    class Reads(MapFunction):
        def open(self, runtime_context: Any) -> None:
            self.text = [Path(path).read_text() for path in paths]

        def map(self, value: int) -> Any:
            return value, self.text, [Path(path).read_text() for path in paths]

    return list(env.from_collection([1, 2]).map(Reads()).execute_and_collect())


@pytest.mark.parametrize("name", ["archive.zip", "archive.tar.gz", "archive.tgz"])
@pytest.mark.parametrize("target_dir", [None, "target", "a/b"])
def test_functions_find_an_archive_under_its_target_directory(
    tmp_path: Path, name: str, target_dir: str | None
) -> None:
    env, program = StreamExecutionEnvironment.get_execution_environment(), Path.cwd()
    env.add_python_archive(packed(tmp_path, name, text="of the archive"), target_dir)
    path = f"{target_dir or name}/data/text"
    found = read_by_functions(env, path)
    assert found == [(value, ["of the archive"], ["of the archive"]) for value in (1, 2)]
    assert Path.cwd() == program
    assert not Path(path).exists()
    tool = env.from_collection([f"{target_dir or name}/data/tool"]).map(
        lambda path: subprocess.run([path], capture_output=True, text=True).stdout
    )
    assert list(tool.execute_and_collect()) == ["tool\n"]


def test_a_program_is_in_its_own_directory_between_the_elements_that_it_takes(tmp_path: Path) -> None:
    env, program = StreamExecutionEnvironment.get_execution_environment(), Path.cwd()
    env.add_python_archive(packed(tmp_path, "archive.zip", text=""), "target")
    stream = env.from_collection([1, 2]).map(lambda value: Path.cwd())
    with stream.execute_and_collect() as elements:
        for directory in elements:
            assert Path.cwd() == program != directory
    assert Path.cwd() == program
    failing = env.from_collection([1]).map(lambda value: 1 // 0)
    with pytest.raises(UserCodeError):
        list(failing.execute_and_collect())
    assert Path.cwd() == program


def test_functions_of_columnar_jobs_find_archives(tmp_path: Path) -> None:
    class Reads(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Iterator[tuple[str]]:
            yield (Path("target/data/text").read_text(),)

    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.add_python_archive(packed(tmp_path, "archive.zip", text="found"), "target")
    log = pa.table({"user": [str(number % 7) for number in range(100)], "ts": range(100)})
    keyed = env.from_event_log(log, timestamp="ts").key_by("user")
    stream = keyed.process(Reads(), pa.schema({"text": pa.string()}))
    assert stream.to_arrow()["text"].to_pylist() == ["found"] * 100
    batches = stream.execute().to_batches()
    assert {text for batch in batches for text in batch["text"].to_pylist()} == {"found"}
    assert list(stream.map(lambda row: row["text"]).execute_and_collect()) == ["found"] * 100


def test_relative_paths_of_a_program_are_in_its_own_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lines.txt").write_text("a\nb\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(packed(tmp_path, "archive.zip", text=""))
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "lines.txt").build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    lines.sink_to(FileSink.for_row_format("written", Encoder.simple_string_encoder()).build())
    env.execute()
    written = [path.read_text() for path in (tmp_path / "written").rglob("*") if path.is_file()]
    assert written == ["a\nb\n"]


def test_an_archive_that_has_changed_counts_again_and_others_have_folders_of_their_own(
    tmp_path: Path,
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(packed(tmp_path, "first.zip", text="before"), "target")
    env.add_python_archive(packed(tmp_path, "second.zip", text="second"))
    env.add_python_archive(packed(tmp_path, "first.zip", text="after"), "target")
    texts = ["after", "second"]
    assert read_by_functions(env, "target/data/text", "second.zip/data/text") == [
        (value, texts, texts) for value in (1, 2)
    ]
    with pytest.raises(
        ConfigurationError, match="an archive has target, so that another one cannot have target/b"
    ):
        env.add_python_archive(tmp_path / "second.zip", "target/b")
    env.add_python_archive(tmp_path / "second.zip", "target")
    assert read_by_functions(env, "target/data/text")[0][1] == ["second"]


@pytest.mark.parametrize(
    ("name", "target_dir", "message"),
    [
        ("missing.zip", None, "there is no archive .*missing.zip"),
        ("notes.txt", None, "notes.txt is not named as an archive. Pack a zip file"),
        ("damaged.zip", None, "damaged.zip is not an archive, or is damaged"),
        ("damaged.tar.gz", None, "damaged.tar.gz is not an archive, or is damaged"),
        ("cut.tar.gz", None, "cut.tar.gz cannot be unpacked"),
        ("good.zip", "/tmp", "a path within the working directory, not '/tmp'"),
        ("good.zip", "../up", "a path within the working directory"),
        ("good.zip", "", "a path within the working directory"),
        ("good.zip", 3, "a path within the working directory, not 3"),
    ],
)
def test_what_is_no_archive_or_has_no_folder_is_refused(
    tmp_path: Path, name: str, target_dir: Any, message: str
) -> None:
    packed(tmp_path, "good.zip", text="")
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "damaged.zip").write_bytes(b"PK and no more")
    (tmp_path / "damaged.tar.gz").write_bytes(b"")
    whole = packed(tmp_path, "whole.tar.gz", text="".join(map(str, range(100_000)))).read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises((SourceError, ConfigurationError), match=message):
        StreamExecutionEnvironment().add_python_archive(tmp_path / name, target_dir)


def wheel(folder: Path, name: str) -> None:
    """Write a wheel whose module knows an answer."""
    information = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "answer = 42",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{information}/RECORD"])
    with ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as packing:
        for path, text in files.items():
            packing.writestr(path, text)


def test_requirements_are_installed_for_functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (bundled,) = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    monkeypatch.setenv("PYTHONPATH", str(bundled))
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("required_by_functions == 1.0\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    (tmp_path / "packages").mkdir()
    wheel(tmp_path / "packages", "required_by_functions")
    env.set_python_requirements(requirements, tmp_path / "packages")
    answers = env.from_collection([1]).map(lambda value: __import__("required_by_functions").answer)
    assert list(answers.execute_and_collect()) == [42]
    sys.modules.pop("required_by_functions")


def test_requirements_that_pip_cannot_install_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "__init__.py").touch()
    (tmp_path / "pip" / "__main__.py").write_text("raise SystemExit('no such package')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    requirements = tmp_path / "requirements.txt"
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(SourceError, match="there is no requirements file"):
        env.set_python_requirements(requirements)
    requirements.write_text("")
    with pytest.raises(SourceError, match="there is no folder of packages"):
        env.set_python_requirements(requirements, tmp_path / "missing")
    with pytest.raises(
        ConfigurationError, match=r"pip cannot install .*requirements.txt for .*: no such package"
    ):
        env.set_python_requirements(requirements)


def test_only_the_interpreter_that_runs_functions_is_accepted() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(sys.executable)
    with pytest.raises(ConfigurationError, match=r"interpreter is .*: start the program by /opt/python"):
        env.set_python_executable("/opt/python")
