"""The blocks of code of a page: run in order, with their output compared with what the page shows.

`python tests/equipment/document_blocks.py PAGE ...` writes the output that it finds into pages.

A page is one program in an empty directory. Its blocks are, by the word behind the fence:

- ``python``: run, with the names that blocks before it have defined;
- ``sh``: commands, run line by line: `flinkcore` and ``python -m flinkcore...`` in this process; ``pip install`` is
  checked against the extras of pyproject.toml, but installs nothing, nor is an environment made (.ci/run does that);
- ``text``: the output of the block before it, in which a line ``...`` stands for any lines; that of a block that is not
  run is not compared;
- ``java``: code of a Flink job, which is not run;
- ``drawing``: no code.

``s3://`` is a folder of that directory, and a command that ends with ``# exit status 1`` is to fail so.

A block whose first line is ``# not run: REASON`` is not run, and the reader sees why. A comment ``<!-- setup`` holds
Python that is run in its place and that a reader does not see: it makes the logs that the page reads. `code_before` is
the text of the Python block before it.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from flinkcore.cli import main

ROOT = Path(__file__).parents[2]

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$|^<!-- setup\n(?P<setup>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
_NOT_RUN = re.compile(r"# not run: (.+)")


@dataclass(frozen=True)
class Block:
    """A block of a page.

    Parameters
    ----------
    kind : str
        The word behind the fence, or "setup".
    text : str
        What stands between the fences, without their indentation.
    line : int
        Of its first line of text in the page, from 1.
    span : (int, int)
        Of its text in the page.
    """

    kind: str
    text: str
    line: int
    span: tuple[int, int]

    @property
    def reason(self) -> str | None:
        """Why it is not run; None if it is."""
        found = _NOT_RUN.match(self.text)
        return found[1] if found and self.kind in ("python", "sh") else None


def blocks_of(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    blocks = []
    for found in _BLOCK.finditer(page):
        name = "text" if found["setup"] is None else "setup"
        indent = found["indent"] or ""
        text = re.sub(f"^{indent}", "", found[name], flags=re.MULTILINE) if indent else found[name]
        kind = found["kind"].split(" ")[0] if found["setup"] is None else "setup"
        blocks.append(Block(kind, text, page.count("\n", 0, found.start(name)) + 1, found.span(name)))
    return blocks


def needs_spark(page: str) -> bool:
    """Return whether blocks that are run use Spark."""
    run = [
        block.text for block in blocks_of(page) if block.kind in ("python", "setup") and block.reason is None
    ]
    return any(re.search(r"\bpyspark\b|\bflinkcore\.spark\b|\bspark\.", text) for text in run)


def outputs_of(page: str, name: str, names: Mapping[str, Any]) -> Iterator[tuple[Block, str]]:
    """Run a page in the current directory; yield each ``text`` block with the output that belongs there."""
    namespace: dict[str, Any] = {"__name__": "__main__", **names}
    output: str | None = ""
    for block in blocks_of(page):
        if block.kind == "text":
            if output is not None:
                yield block, output
        elif block.reason is not None:
            output = None
        elif block.kind in ("python", "sh", "setup"):
            # On one processor: results of several threads come in no certain order.
            with contextlib.redirect_stdout(io.StringIO()) as written, patch("os.cpu_count", return_value=1):
                text = block.text.replace("s3://", "s3/")
                if block.kind == "sh":
                    _run_commands(text)
                else:
                    code = "\n" * (block.line - 1) + text  # errors name the line
                    exec(compile(code, name, "exec"), namespace)
                    namespace["code_before"] = block.text
            output = written.getvalue()


def is_shown(shown: str, output: str) -> bool:
    """Return whether a page shows an output; a line ``...`` stands for any lines."""
    pattern = r"\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "..." else re.escape(line.rstrip())
        for line in shown.strip("\n").splitlines()
    )
    printed = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    return re.fullmatch(pattern, printed) is not None


def _run_commands(text: str) -> None:
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if words[0] == "flinkcore":
            status, stated = main(words[1:]), re.search(r"# exit status (\d+)$", line)
            assert status == (int(stated[1]) if stated else 0), f"{line}: exit status {status}"
        elif words[:2] == ["python", "-m"] and words[2].startswith("flinkcore."):
            with patch.object(sys, "argv", words[2:]):
                module = importlib.import_module(words[2])
                if hasattr(module, "__path__"):
                    module = importlib.import_module(f"{words[2]}.__main__")
                module.main()
        elif words[:2] == ["pip", "install"]:
            _check_requirements(words[2:])
        elif words[1:3] == ["-m", "venv"]:
            installed = line.partition("pip install ")[2].partition("&&")[0]
            _check_requirements([word for word in shlex.split(installed) if not word.startswith("-")])
        else:
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", line],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                env={**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            print(done.stdout, end="")


def _check_requirements(requirements: list[str]) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    extras = set(
        re.findall(r"^(\w+) = \[", project.split("[project.optional-dependencies]")[1], re.MULTILINE)
    )
    for requirement in requirements:
        found = re.fullmatch(r"(?:flinkcore|\.)(?:\[([\w,]+)\])?", requirement)
        assert found or not requirement.startswith("flinkcore"), requirement
        unknown = set((found[1] or "").split(",")) - extras - {""} if found else set()
        assert not unknown, f"pip install {requirement}: pyproject.toml has no extra {unknown}"


def page_with_outputs(page: str, name: str, names: Mapping[str, Any]) -> str:
    """Return a page with the outputs of its blocks; those that have lines ``...`` and are right stay as they are."""
    changes = [
        (block.span, output)
        for block, output in outputs_of(page, name, names)
        if not is_shown(block.text, output)
    ]
    for (start, end), output in reversed(changes):
        page = page[:start] + output.strip("\n") + "\n" + page[end:]
    return page


def write_outputs(paths: list[Path]) -> None:
    """Write the outputs of blocks into pages."""
    with contextlib.ExitStack() as stack:
        spark = None
        for path in paths:
            page = path.read_text(encoding="utf-8")
            if spark is None and needs_spark(page):
                from equipment.spark_sessions import spark_session

                spark = stack.enter_context(spark_session("local[2]", spark_sql_shuffle_partitions="2"))
            os.chdir(stack.enter_context(tempfile.TemporaryDirectory()))
            path.write_text(page_with_outputs(page, str(path), {"spark": spark}), encoding="utf-8")
            os.chdir(ROOT)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    write_outputs([Path(argument).resolve() for argument in sys.argv[1:]])
