"""The traceback of a program that `flinkcore run` has run."""

from __future__ import annotations

import contextlib
import runpy
from pathlib import Path
from traceback import StackSummary, TracebackException

import flinkcore
from flinkcore.cli import run
from flinkcore.errors import FlinkcoreError

_PACKAGE = Path(flinkcore.__file__).parent


def program_traceback(error: BaseException) -> str:
    """Return a traceback of the program's lines; with those of flinkcore only where flinkcore itself has failed."""
    traceback = TracebackException.from_exception(error)
    part: TracebackException | None = traceback
    raised: BaseException | None = error
    while part is not None and raised is not None:
        last = part.stack[-1].filename if part.stack else ""
        is_defect = _is_of_flinkcore(last) and not isinstance(raised, FlinkcoreError)
        part.stack = StackSummary.from_list(
            [
                frame
                for frame in part.stack
                if not _starts_programs(frame.filename)
                and (is_defect or not _is_of_flinkcore(frame.filename))
            ]
        )
        if part.__cause__ is not None:
            part, raised = part.__cause__, raised.__cause__
        else:
            part, raised = part.__context__, raised.__context__
    return "".join(traceback.format())


def _starts_programs(file: str) -> bool:
    return file in (run.__file__, runpy.__file__, "<frozen runpy>")


def _is_of_flinkcore(file: str) -> bool:
    path = Path(file)
    is_kernel = path.parent == Path("_native")  # as Cython names it
    return _PACKAGE in path.parents or is_kernel or file == contextlib.__file__
