"""Files in place of the topics of a cluster: the dumps that sources read, and the directories that sinks write."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flinkcore._internal.io.locations import absolute_location, is_local
from flinkcore._internal.python.user_warnings import warn_user
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.datastream.connectors.kafka.flink_kafka import FlinkKafkaConsumer, FlinkKafkaProducer
from flinkcore.datastream.connectors.kafka.kafka_offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    check_topic,
)
from flinkcore.datastream.connectors.kafka.kafka_sink import KafkaSink
from flinkcore.datastream.connectors.kafka.kafka_source import KafkaSource
from flinkcore.datastream.formats.topic_files import FORMATS, TopicFilesSink, TopicFormat
from flinkcore.datastream.graph.topic_records import SETTINGS, TopicRecords, TopicSource
from flinkcore.errors import ArgumentTypeError, ConfigurationError

if TYPE_CHECKING:
    from flinkcore._internal.io.stores import Stores

SOURCES: Final = (KafkaSource, FlinkKafkaConsumer)
"""Classes of sources that dumps replace."""

SINKS: Final = (KafkaSink, FlinkKafkaProducer)
"""Classes of sinks that a directory replaces."""


class ReplacedTopics:
    """The files that take the place of topics in the jobs of an environment.

    Attributes
    ----------
    used : set
        Names of classes of sources with a topic, and of sinks, whose files the program uses.
    """

    def __init__(self) -> None:
        self.used: set[tuple[str, str] | str] = set()
        self._dumps: dict[type, dict[str, tuple[str, ...]]] = {}
        self._directories: dict[type, tuple[str, TopicFormat | None]] = {}

    def add_dumps(self, source: Any, dumps: Any) -> None:
        """Take dumps; see :meth:`StreamExecutionEnvironment.replace_source`."""
        if source not in SOURCES:
            raise ArgumentTypeError(
                f"replace_source replaces {_names(SOURCES)}, and not {_name_of(source)}: give one of these classes"
            )
        if not isinstance(dumps, Mapping) or not dumps:
            raise ArgumentTypeError(
                "replace_source takes the paths of dumps by topic, such as {'clicks': 'dump/clicks'}, not "
                f"{dumps!r}"
            )
        of_source = self._dumps.setdefault(source, {})
        for topic, paths in dumps.items():
            check_topic(topic)
            of_source[topic] = of_source.get(topic, ()) + _paths(topic, paths)

    def set_directory(self, sink: Any, directory: Any, format: TopicFormat | None) -> None:
        """Take a directory; see :meth:`StreamExecutionEnvironment.replace_sink`."""
        if sink not in SINKS:
            raise ArgumentTypeError(
                f"replace_sink replaces {_names(SINKS)}, and not {_name_of(sink)}: give one of these classes"
            )
        if (
            not isinstance(directory, str | os.PathLike)
            or not os.fspath(directory)
            or not is_local(directory)
        ):
            raise ConfigurationError(f"{sink.__name__} is replaced by a local directory, not {directory!r}")
        if format is not None and format not in FORMATS:
            raise ConfigurationError(
                f"the format of a topic's files is one of {', '.join(map(repr, FORMATS))}, or None, not {format!r}"
            )
        self._directories[sink] = absolute_location(directory), format

    def source_step(
        self,
        given: Any,
        strategy: WatermarkStrategy,
        type_info: TypeInformation,
        stores: Stores | None,
        until_ms: int | None = None,
    ) -> TopicSource:
        """Return the step that reads dumps in place of a KafkaSource or a FlinkKafkaConsumer.

        Parameters
        ----------
        given : KafkaSource or FlinkKafkaConsumer
        strategy : WatermarkStrategy
        type_info : TypeInformation
            Type of the elements.
        stores : Stores or None
            File systems of the dumps.
        until_ms : int, optional
            Leaves out records that arrive at this time or later, in ms since the epoch.

        Raises
        ------
        ConfigurationError
            If a topic has no dump; the message has the command line that gives it one.
        """
        kind = type(given)
        source: KafkaSource = given.source() if isinstance(given, FlinkKafkaConsumer) else given
        dumps = self._dumps.get(kind, {})
        topics = source.topics_among(dumps)
        lacking = [topic for topic in topics if topic not in dumps]
        if lacking or not topics:
            raise ConfigurationError(_no_dump(kind.__name__, source, lacking, list(dumps)))
        self.used.update((kind.__name__, topic) for topic in topics)
        starting = source.starting_offsets
        if starting.kind == "latest" or (
            starting.kind == "committed" and starting.reset_strategy is KafkaOffsetResetStrategy.LATEST
        ):
            warn_user(
                f"{kind.__name__} starts at the latest offsets: the dump counts as what arrived after that, and all of "
                "it is read"
            )
        records = TopicRecords(
            {topic: dumps[topic] for topic in topics},
            source.partitions,
            starting,
            source.stopping_offsets or KafkaOffsetsInitializer.latest(),
            stores,
        )
        return TopicSource(
            records,
            replace(SETTINGS, until_ms=until_ms),
            deserializer=source.deserializer,
            strategy=strategy,
            type_info=type_info,
            is_bounded=source.is_bounded,
        )

    def sink_of(self, given: Any) -> TopicFilesSink:
        """Return the sink that writes files in place of a KafkaSink or a FlinkKafkaProducer.

        Raises
        ------
        ConfigurationError
            If there is no directory for them; the message has the command line that gives one.
        """
        kind = type(given)
        sink: KafkaSink = given.sink() if isinstance(given, FlinkKafkaProducer) else given
        if kind not in self._directories:
            raise ConfigurationError(
                f"{kind.__name__} writes {sink.shown_topics} of a cluster, and a job here writes files: run "
                f"`flinkcore run --replace-sink {kind.__name__} DIRECTORY {_program()}`, or call "
                f"env.replace_sink({kind.__name__}, 'DIRECTORY') before the stream gets its sink"
            )
        self.used.add(kind.__name__)
        directory, format = self._directories[kind]
        return TopicFilesSink(directory, serializer=sink.serializer, topic_format=format)


def _no_dump(kind: str, source: KafkaSource, lacking: list[str], dumped: list[str]) -> str:
    topic = lacking[0] if lacking else "TOPIC"
    given = f"; there are dumps of {', '.join(map(repr, dumped))}" if dumped else ""
    options = " ".join(f"--replace-source {kind} {each}=PATH" for each in lacking or [topic])
    wanted = (
        f"topic{'s' if len(lacking) > 1 else ''} {', '.join(map(repr, lacking))}"
        if lacking
        else source.shown_topics
    )
    return (
        f"{kind} reads {wanted} of a cluster, and a job here reads a dump of each topic{given}: run `flinkcore run "
        f"{options} {_program()}`, or call env.replace_source({kind}, {{{topic!r}: 'PATH'}}) before the source is used"
    )


def _program() -> str:
    program = os.path.basename(sys.argv[0]) if sys.argv else ""
    return program if program.endswith(".py") and not program.startswith("__") else "PROGRAM.py"


def _paths(topic: str, paths: Any) -> tuple[str, ...]:
    listed = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(listed, Iterable) or not (found := list(listed)):
        raise ArgumentTypeError(f"the dump of topic {topic!r} is a path, or several, not {paths!r}")
    for path in found:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ArgumentTypeError(f"the dump of topic {topic!r} is a path, or several, not {path!r}")
    return tuple(absolute_location(path) for path in found)


def _names(classes: tuple[type, ...]) -> str:
    return " and ".join(each.__name__ for each in classes)


def _name_of(given: object) -> str:
    return given.__name__ if isinstance(given, type) else repr(given)
