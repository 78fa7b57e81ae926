"""The command `flinkcore`: replay a log, run a program or the demo, compare results, inspect a checkpoint, and more."""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, TextIO

import flinkcore
from flinkcore._internal.python.user_warnings import user_frame
from flinkcore.errors import FlinkcoreError

_MODULES: Final = {
    "replay": "flinkcore.cli.replay",
    "demo": "flinkcore.cli.replay",
    "why": "flinkcore.cli.why",
    "lateness": "flinkcore.cli.lateness",
    "races": "flinkcore.cli.races",
    "run": "flinkcore.cli.run",
    "sql": "flinkcore.cli.sql",
    "checkpoint": "flinkcore.cli.checkpoint",
    "savepoint": "flinkcore.cli.savepoint",
    "compare": "flinkcore.cli.compare",
}
"""Modules of the commands: each loads only what it needs, so that a program starts soon."""


@contextmanager
def _without_gateway_log() -> Iterator[None]:
    """Suppress py4j's log of errors that it also raises, such as a KeyboardInterrupt."""

    def is_told_once(record: logging.LogRecord) -> bool:
        return record.module not in ("java_gateway", "clientserver")

    logger = logging.getLogger()
    logger.addFilter(is_told_once)
    try:
        yield
    finally:
        logger.removeFilter(is_told_once)


def _has_lost_its_reader() -> bool:
    """Return whether the reader of the standard output has gone; then redirect it, since Python flushes it at exit."""
    try:
        print(flush=True)  # a flush alone has nothing to write where Python does not buffer
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return True
    return False


_PROGRAM_ONLY: Final = r"what_if\(|with_columns\(|\.filter\(|pyarrow\.compute\."

_OPTIONS: Final = (
    # Advice that only a program can follow is left out.
    (r", give nulls a value by with_columns\([^;]*?functions in Python cannot(?=, or set )", ""),
    (r' In a program, an OutputTag instead of "drop" collects them with their reasons\.', ""),
    # A message that names both keeps only the option.
    (r"\(\w+=, (--)", r"(\1"),
    (r"\b\w+=(?:'[^']*'|\w*) \((--[^();]+)\)", r"\1"),
    (r"\b(timestamp|arrival)_unit\b", r"--\1-unit"),
    (r"(?<=.unit)='(\w+)'", r" \1"),
    (r"split= \(--split; ", "--split ("),
    (r"\bcolumns=\[\.\.\.\]", "--column"),
    (
        r'let on_bad_row="drop" count (them|such rows), or an OutputTag collect them',
        r"let --on-bad-row drop count \1",
    ),
    (r'set on_bad_row="drop" or to an OutputTag', "give --on-bad-row drop"),
    (r"\bon_bad_row=?", "--on-bad-row"),
    (r"\btables= has\b", "--table names"),
    (
        r"\btables=\{'([^']*)': \.\.\.\}: a path, Arrow data or env\.from_event_log\(\.\.\.\)",
        r"--table \1=PATH",
    ),
    (r"\bfunctions=\{'?([^']*?)'?: \.\.\.\}", r"--function \1=MODULE:FUNCTION"),
    (r"\bemitted_at\b", "--emitted-at"),
    (r"\bwindow= (?=is a time)", "--at "),
    (r"\bbounds=\[\.\.\.\]", "--bound"),
    (r"\bby_split\(\)", "--by-split"),
    (r"\brestore_from=?", "--restore-from"),
    (r"\bstop_with_checkpoint=?", "--checkpoint"),
    (r"\bmode='(\w+)'", r"--mode \1"),
    (r"\bpartition_by\b", "--partition-by"),
    (r"\buntil=", "--until"),
    (r"\bset_parallelism(\(\.*\))?", "--parallelism"),
    (r"(?<![\w-])(timestamp|arrival|split|format|rate|position|decode)=(?=[ ,.;:]|$)", r"--\1"),
    (r"\bschema=\{'?([^{}:,']+)'?: '?([^{},']+)'?\}", r"--type '\1=\2'"),
    (r"\bschema=(?=[ ,.;:]|$)", "--schema"),
    (r"\bformat_options=\{'(\w+)': '?([^{}']*)'?\}", r"--format-option '\1=\2'"),
    (r"\bformat_options(?=: )", "--format-option"),
)
"""Settings of a program as this command names them, as regular expressions, which few calls need."""


def _of_shell(message: str) -> str:
    """Return a message with the command's options in place of a program's settings."""
    for setting, option in _OPTIONS:
        message = re.sub(setting, option, message)
    if re.search(_PROGRAM_ONLY, message):
        program = "The command has no option for such calls of a program: write one for that"
        message = f"{message.removesuffix('.')}. {program}"
    return message


def _tell_warnings() -> None:
    """Print each warning of flinkcore once, in a line, as soon as it is known; within ``warnings.catch_warnings``."""
    show, told, caller = warnings.showwarning, set[str](), user_frame()

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = str(message)
        if filename != caller.f_code.co_filename:
            show(message, category, filename, lineno, file, line)
        elif text not in told:
            told.add(text)
            print(f"flinkcore: warning: {_of_shell(text)}", file=sys.stderr, flush=True)

    module = re.escape(caller.f_globals["__name__"]) + r"\Z"
    warnings.filterwarnings("always", category=UserWarning, module=module)
    warnings.showwarning = tell


def _joined_negatives(arguments: Sequence[str]) -> list[str]:
    """Return arguments in which "--option -4s" is "--option=-4s": argparse takes -4s for an option."""
    joined: list[str] = []
    for argument in arguments:
        if re.match(r"-\d", argument) and joined and re.fullmatch(r"--[a-z-]+", joined[-1]):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return the exit status: 0, 1 after an error, or 130 after Ctrl-C.

    Where 1 says that differences were found, it is 2 after an error, as of ``diff``; arguments that are none of the
    command exit with 2. It is 141, as after SIGPIPE, if the reader of the output has gone, such as ``head``; nothing is
    printed then. Errors of flinkcore, of files and of Arrow data are printed in one line; any other is a defect, and
    has its traceback. Warnings are lines of the standard error, too, and come before what takes long.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands = _parser(given)
    parsed, unknown = parser.parse_known_args(
        given if given[:1] == ["run"] else _joined_negatives(given), argparse.Namespace(given=given)
    )
    if unknown:
        commands.choices[parsed.command].error(f"unrecognized arguments: {' '.join(unknown)}")
    status_of_errors: int = parsed.status_of_errors
    try:
        with warnings.catch_warnings(), _without_gateway_log():
            if parsed.command != "run":
                _tell_warnings()
            status: int = parsed.call(parsed) or 0
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        written = "" if parsed.command == "run" else "; no results were written"
        print(f"flinkcore: interrupted{written}", file=sys.stderr)
        return 130
    except FlinkcoreError as error:
        print(f"flinkcore: {_of_shell(str(error))}", file=sys.stderr)
        return status_of_errors
    except Exception as error:
        if isinstance(error, BrokenPipeError) and _has_lost_its_reader():
            return 141
        if not isinstance(error, OSError | _arrow_errors()):
            raise
        print(f"flinkcore: {type(error).__name__}: {' '.join(str(error).split())}", file=sys.stderr)
        return status_of_errors


def _arrow_errors() -> type[Exception]:
    import pyarrow as pa

    error: type[Exception] = pa.ArrowException
    return error


def _parser(arguments: Sequence[str]) -> tuple[argparse.ArgumentParser, Any]:
    """Return the parser of the command that is called, or of all, where none is; and those of each by its name."""
    parser = argparse.ArgumentParser(
        prog="flinkcore",
        description="Replays event logs with Flink's event-time semantics, on Spark or in one process.",
    )
    parser.set_defaults(status_of_errors=1)
    parser.add_argument("--version", action="version", version=f"flinkcore {flinkcore.__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    called = _MODULES.get(arguments[0]) if arguments else None
    for module in dict.fromkeys(_MODULES.values()) if called is None else [called]:
        import_module(module).add_commands(commands)
    return parser, commands
