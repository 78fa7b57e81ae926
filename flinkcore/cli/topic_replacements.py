"""Options of `flinkcore run` that put files in the place of a program's topics."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkcore._internal.io.locations import absolute_location
from flinkcore.errors import ConfigurationError

if TYPE_CHECKING:
    from flinkcore.datastream import StreamExecutionEnvironment


def add_replacements(parser: argparse.ArgumentParser) -> list[str]:
    """Add the options to a parser, and return their names."""
    source = parser.add_argument(
        "--replace-source",
        action=_ReplacedSource,
        metavar=("CLASS", "TOPIC=PATH"),
        nargs=2,
        default=[],
        help="files that its KafkaSource or FlinkKafkaConsumer reads in place of a topic; repeat for more",
    )
    sink = parser.add_argument(
        "--replace-sink",
        metavar=("CLASS", "DIRECTORY"),
        nargs=2,
        action="append",
        default=[],
        help="directory which its KafkaSink or FlinkKafkaProducer writes instead, with a directory for each topic",
    )
    sink_format = parser.add_argument(
        "--sink-format",
        choices=["lines", "parquet"],
        help="what is written there: a value in each line, or Parquet with keys; by default as the records are",
    )
    return [option for action in (source, sink, sink_format) for option in action.option_strings]


class _ReplacedSource(argparse.Action):
    """Takes a class and a topic with its path, which a bare class would lack."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        name, dump = values
        topic, equals, path = dump.partition("=")
        if not equals or not topic or not path:
            parser.error(
                f"{option_string} {name} takes TOPIC=PATH for each topic, such as clicks=dump/clicks, and not {dump!r}"
            )
        given = [*getattr(namespace, self.dest), (name, topic, path)]
        setattr(namespace, self.dest, given)


class Replacements(NamedTuple):
    """The files in place of topics.

    Attributes
    ----------
    dumps : list of (str, str, str)
        Class, topic and path.
    directories : list of (str, str)
        Class and directory.
    sink_format : str or None
    """

    dumps: list[tuple[str, str, str]]
    directories: list[tuple[str, str]]
    sink_format: Any

    @classmethod
    def of(
        cls, arguments: argparse.Namespace, of_program: Sequence[str], prog: str
    ) -> tuple[Replacements, list[str]]:
        """Return what the options say, also those after the program, and the other arguments of the program.

        Raises
        ------
        ConfigurationError
            If a class has no replacement, or there is a format and no sink.
        """
        parser = argparse.ArgumentParser(prog=prog, add_help=False, allow_abbrev=False)
        add_replacements(parser)
        end = list(of_program).index("--") if "--" in of_program else len(of_program)
        behind, others = parser.parse_known_args(list(of_program[:end]))
        found = cls(
            [
                (name, topic, absolute_location(path))
                for name, topic, path in (*arguments.replace_source, *behind.replace_source)
            ],
            [
                (name, absolute_location(path))
                for name, path in (*arguments.replace_sink, *behind.replace_sink)
            ],
            behind.sink_format or arguments.sink_format,
        )
        if found.sink_format is not None and not found.directories:
            raise ConfigurationError(
                "--sink-format is of the files of --replace-sink CLASS DIRECTORY, which is not given"
            )
        found.check()
        return found, [*others, *of_program[end:]]

    def check(self) -> None:
        """Accept the classes if files replace them."""
        if not self.dumps and not self.directories:
            return
        # Programs without topics do not load these classes.
        from flinkcore.datastream.replaced_topics import SINKS, SOURCES

        for option, names, classes in (
            ("--replace-source", [name for name, *_ in self.dumps], SOURCES),
            ("--replace-sink", [name for name, _ in self.directories], SINKS),
        ):
            known = [each.__name__ for each in classes]
            for name in names:
                if name not in known:
                    raise ConfigurationError(f"{option} replaces {' or '.join(known)}, not {name}")

    def apply(self, environment: StreamExecutionEnvironment) -> None:
        """Let an environment read and write these files."""
        if not self.dumps and not self.directories:
            return
        from flinkcore.datastream.replaced_topics import SINKS, SOURCES

        classes = {each.__name__: each for each in (*SOURCES, *SINKS)}
        for name, topic, path in self.dumps:
            environment.replace_source(classes[name], {topic: path})
        for name, directory in self.directories:
            environment.replace_sink(classes[name], directory, self.sink_format)

    def tell_what_is_unused(self, environments: Sequence[StreamExecutionEnvironment]) -> None:
        """Warn of files that no environment of the program has used."""
        if not self.dumps and not self.directories:
            return
        used: set[Any] = set().union(*(environment._replaced_topics.used for environment in environments))
        for name, topic, path in self.dumps:
            if (name, topic) not in used:
                _warn(f"no {name} of the program reads topic {topic!r}: its dump {path} was not used")
        for name, directory in self.directories:
            if name not in used:
                _warn(f"the program has no {name}: nothing was written into {directory}")


def _warn(text: str) -> None:
    print(f"flinkcore: warning: {text}", file=sys.stderr)
