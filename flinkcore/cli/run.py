"""The command `flinkcore run`, which runs a program of PyFlink's as it is."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import flinkcore
from flinkcore._internal.arrow.instants import instant_ms
from flinkcore._internal.io.locations import absolute_location
from flinkcore.cli.spark_environment import spark_environment
from flinkcore.cli.topic_replacements import Replacements, add_replacements
from flinkcore.common import Configuration
from flinkcore.common.settings.flink_settings import (
    PYTHON_EXECUTION_MODE,
    RESTORE_PATH,
    check_settings,
    unknown_settings,
)
from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.errors import ConfigurationError, SourceError

if TYPE_CHECKING:
    from pathlib import Path


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    run = commands.add_parser(
        "run", help="run a PyFlink program as it is: its `import pyflink` gives flinkcore"
    )
    setting = run.add_argument(
        "-D",
        dest="settings",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a setting of all its environments; repeat for more",
    )
    parallelism = run.add_argument("-p", "--parallelism", type=int, help="as -D parallelism.default=")
    clock = run.add_argument(
        "--clock",
        choices=["arrival", "system"],
        help="what shows the time of jobs: the arrival of elements, as if nothing is said, or this machine",
    )
    master = run.add_argument(
        "--master", help="run on Spark, at this master, such as local[*]; else in this process"
    )
    python_files = run.add_argument(
        "--py-files",
        metavar="PATH",
        action="append",
        default=[],
        help="a module, folder or archive of modules that its functions need; repeat for more",
    )
    restoring = run.add_argument(
        "-s",
        "--restore-from",
        metavar="DIR",
        help="savepoint of Flink, or checkpoint of flinkcore, with whose state its jobs begin: as -D "
        "execution.state-recovery.path=",
    )
    stopping = run.add_argument(
        "--stop-with-savepoint",
        metavar="DIR",
        help="new directory for a savepoint, from which the same program continues in PyFlink: its job then stops with "
        "open windows and timers",
    )
    mode = run.add_argument(
        "--execution-mode",
        choices=["process", "thread"],
        help="mode of PyFlink that the savepoint is for: as -D python.execution-mode=",
    )
    until = run.add_argument(
        "--until",
        metavar="TIME",
        help="leave out of topics and logs what arrives at this time or later: such as 2026-11-30T12:00, in UTC",
    )
    replacing = add_replacements(run)
    run.add_argument("program", metavar="PROGRAM.py")
    of_program = run.add_argument(
        "arguments",
        nargs=argparse.REMAINDER,
        help="arguments of the program; after --, those that are options of this command, too",
    )
    of_program.required = False  # it may have none, of which argparse does not know
    options = [
        option
        for action in (
            *(setting, parallelism, clock, master, python_files, restoring),
            *(stopping, mode, until),
        )
        for option in action.option_strings
    ]
    run.set_defaults(call=run_program, own_options=[*options, *replacing], prog=run.prog)


def run_program(arguments: argparse.Namespace) -> int:
    """Run `flinkcore run`, and return the exit status: 0, or 1 after an error, whose traceback is printed.

    A program that ends well, but has sinks or steps that never ran, gets a message. Options of this command among
    the arguments of the program are warned of, except those that replace its sources and sinks, which work there, too.

    Raises
    ------
    ConfigurationError
        If a setting is none, or Spark is not installed.
    SourceError
        If there is no such program, or no such file for its functions.
    SystemExit
        If the program exits so.
    """
    if not os.path.isfile(arguments.program):
        raise SourceError(f"there is no program {arguments.program}", file=arguments.program)
    if arguments.until is not None:
        instant_ms(arguments.until, "--until")  # fails before the program runs
    replacements, of_program = _replacements(arguments)
    of_program = _arguments_of_program(arguments, of_program)
    configuration, python_files = _configuration(arguments), _python_files(arguments.py_files)
    environments: list[StreamExecutionEnvironment] = []

    def new_environment() -> StreamExecutionEnvironment:
        environments.append(_new_environment(configuration, arguments.master, python_files))
        _let_end(environments[-1], arguments)
        replacements.apply(environments[-1])
        return environments[-1]

    import_module("flinkcore.pyflink")
    before = sys.argv, sys.path[:]
    sys.argv = [arguments.program, *of_program]
    sys.path.insert(0, os.path.dirname(os.path.realpath(arguments.program)))
    StreamExecutionEnvironment.initialize_context_environment(new_environment)
    try:
        runpy.run_path(arguments.program, run_name="__main__")
        sys.stdout.flush()
    except Exception as error:
        from flinkcore.cli.program_traceback import program_traceback

        print(program_traceback(error), end="", file=sys.stderr)
        return 1
    except SystemExit as end:
        if not end.code:
            _tell_what_did_not_run(environments)
            replacements.tell_what_is_unused(environments)
        raise
    finally:
        StreamExecutionEnvironment.initialize_context_environment(None)
        sys.argv, sys.path[:] = before
    _tell_what_did_not_run(environments)
    replacements.tell_what_is_unused(environments)
    return 0


def _replacements(arguments: argparse.Namespace) -> tuple[Replacements, list[str]]:
    """Return what replaces sources and sinks of the program, and its arguments."""
    given: list[str] = arguments.arguments
    if _are_of_program_alone(arguments):
        return Replacements.of(arguments, [], arguments.prog)[0], given
    return Replacements.of(arguments, given, arguments.prog)


def _are_of_program_alone(arguments: argparse.Namespace) -> bool:
    """Return whether a ``--`` says that all options after the program are its own."""
    given: list[str] = arguments.arguments
    before = arguments.given[: len(arguments.given) - len(given)]
    return given[:1] == ["--"] or before[-1] == "--"


def _arguments_of_program(arguments: argparse.Namespace, of_program: list[str]) -> list[str]:
    """Return what the program gets; warn of options of this command, unless a ``--`` says that they are its own."""
    if _are_of_program_alone(arguments):
        # argparse takes it out in some versions of Python
        return of_program[1:] if of_program[:1] == ["--"] else of_program
    mistaken = [argument for argument in of_program if _is_one_of(argument, arguments.own_options)]
    if mistaken:
        print(
            f"flinkcore: warning: the program gets {' and '.join(mistaken)}, and flinkcore run does not, since options "
            f"after {arguments.program} are the program's. Write options of flinkcore run before {arguments.program}, "
            f"or write -- after it if the program takes these.",
            file=sys.stderr,
        )
    return of_program


def _is_one_of(argument: str, options: Sequence[str]) -> bool:
    """Return whether an argument is one of the options, also with its value: --master=local, -p4."""
    name = argument.partition("=")[0] if argument.startswith("--") else argument[:2]
    return name in options


def _tell_what_did_not_run(environments: Sequence[StreamExecutionEnvironment]) -> None:
    if any(environment._has_unexecuted() for environment in environments):
        print(
            "flinkcore: the program has ended, and nothing has run its last sinks and functions: end it with "
            "env.execute(), or take the elements of a stream by execute_and_collect()",
            file=sys.stderr,
        )


def _configuration(arguments: argparse.Namespace) -> Configuration:
    configuration = Configuration()
    for setting in arguments.settings:
        key, equals, value = setting.partition("=")
        if not key or not equals:
            raise ConfigurationError(f"-D takes KEY=VALUE, such as -D parallelism.default=2, not {setting!r}")
        configuration.set_string(key, value)
    if arguments.parallelism is not None:
        configuration.set_integer("parallelism.default", arguments.parallelism)
    if arguments.clock is not None:
        configuration.set_string("flinkcore.clock", arguments.clock)
    if arguments.execution_mode is not None:
        configuration.set_string(PYTHON_EXECUTION_MODE.key(), arguments.execution_mode)
    if arguments.restore_from is not None:
        configuration.set_string(RESTORE_PATH.key(), arguments.restore_from)
    check_settings(configuration)
    for key, warning in unknown_settings(configuration).items():
        print(f"flinkcore: {warning}", file=sys.stderr)
        configuration.remove_config(key)
    return configuration


def _python_files(paths: Sequence[str]) -> list[Path]:
    if not paths:
        return []
    from flinkcore.datastream.graph.python_dependencies import python_file  # loads what reads archives

    return [python_file(path) for path in paths]


def _new_environment(
    configuration: Configuration, master: str | None, python_files: Sequence[Path]
) -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment() if master is None else _on_spark(master)
    environment.configure(configuration)
    for path in python_files:
        environment.add_python_file(path)
    return environment


def _let_end(environment: StreamExecutionEnvironment, arguments: argparse.Namespace) -> None:
    """Let the jobs of an environment end at a time, and stop with a savepoint for the mode of PyFlink that is set."""
    environment._until = arguments.until
    if arguments.stop_with_savepoint is None:
        return
    from flinkcore.savepoints import SavepointTarget

    path = absolute_location(arguments.stop_with_savepoint)

    def savepoint(configuration: Configuration) -> SavepointTarget:
        mode: Any = configuration.get(PYTHON_EXECUTION_MODE)
        return SavepointTarget(path, execution_mode=mode)

    environment._savepoint_of_jobs = savepoint


def _on_spark(master: str) -> StreamExecutionEnvironment:
    environment = spark_environment(master, "leave --master out")
    environment.add_python_file(os.path.join(flinkcore.__path__[0], "pyflink.py"))
    return environment
