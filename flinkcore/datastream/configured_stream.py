"""Name, id and parallelism of the last step of a stream."""

from __future__ import annotations

from typing import Any, TypeVar

from flinkcore.datastream.operator_settings import ChainingStrategy
from flinkcore.datastream.transformations import Transformation
from flinkcore.errors import ConfigurationError

S = TypeVar("S", bound="ConfiguredStream")


class ConfiguredStream:
    """What :class:`DataStream` and :class:`DataStreamSink` can be told about their last step.

    Each call changes the step, and returns the same object, as in PyFlink. Results do not depend on chaining, and on
    parallelism only as far as order and side effects of functions go.
    """

    _transformation: Transformation

    def get_name(self) -> str:
        """Return the name of the step; what it does, unless it has been given one."""
        return self._transformation.settings.name or str(self._transformation)

    def name(self: S, name: str) -> S:
        """Name the step, for messages, ``explain`` and the task name of functions."""
        self._transformation.settings.set_text("name", name)
        return self

    def uid(self: S, uid: str) -> S:
        """Give the step an id, which two steps of a job cannot share.

        By its id a step of a columnar job finds its state in a checkpoint. Without one a process function or a join is
        "process-1", windows are "window-1", and the watermarks of the log, with the positions in its splits,
        "watermarks-1"; each operator and each log after the first counts on. A watermark strategy that follows a union
        gives each log its id with "-" and the number of the log.

        Raises
        ------
        ConfigurationError
            If it is empty, or no text.
        """
        self._transformation.settings.set_text("uid", uid)
        return self

    def set_uid_hash(self: S, uid_hash: str) -> S:
        """Raise a ConfigurationError: there are no savepoints of Flink to read."""
        raise ConfigurationError(
            f"set_uid_hash({uid_hash!r}) is for savepoints of Flink, which nothing reads here: take uid(...)"
        )

    def set_description(self: S, description: str) -> S:
        """Describe the step, for ``explain``."""
        self._transformation.settings.set_text("description", description)
        return self

    def set_parallelism(self: S, parallelism: int) -> S:
        """Set how many subtasks run the step.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_parallelism(parallelism)
        return self

    def disable_chaining(self: S) -> S:
        """Let the step be called neither directly by the one before, nor call the next one directly."""
        self._transformation.settings.chaining = ChainingStrategy.NEVER
        return self

    def slot_sharing_group(self: S, slot_sharing_group: Any) -> S:
        """Accept a group, which has no meaning here: there are no slots."""
        return self


class ConfiguredOperatorStream(ConfiguredStream):
    """What streams can be told beyond what sinks can."""

    def set_max_parallelism(self: S, max_parallelism: int) -> S:
        """Set how many key groups the step has.

        Raises
        ------
        ConfigurationError
            If it is not from 1 to 32,768.
        """
        self._transformation.settings.set_max_parallelism(max_parallelism)
        return self

    def force_non_parallel(self: S) -> S:
        """Let one subtask run the step."""
        self._transformation.settings.set_parallelism(1)
        self._transformation.settings.set_max_parallelism(1)
        return self

    def set_buffer_timeout(self: S, timeout_millis: int) -> S:
        """Accept a timeout, which has no meaning here: elements are never buffered."""
        return self

    def start_new_chain(self: S) -> S:
        """Let the step not be called directly by the one before."""
        self._transformation.settings.chaining = ChainingStrategy.HEAD
        return self
