"""Every error that flinkcore raises on purpose: the message names the row, column or setting, and what to do."""

from typing import Any, Final


class FlinkcoreError(Exception):
    """Base of all errors raised by flinkcore."""


class ConfigurationError(FlinkcoreError, ValueError):
    """A setting, or a combination of settings, that is invalid."""


class ArgumentTypeError(ConfigurationError, TypeError):
    """An argument of a type that a call does not take; a TypeError, as in PyFlink."""


class SqlError(ConfigurationError):
    """A statement of SQL that Flink refuses.

    Attributes
    ----------
    line, column : int
        Place in the script, counted from 1.
    statement : str
        Text of the statement, without comments.
    """

    def __init__(self, message: str, line: int = 1, column: int = 1, statement: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.column = column
        self.statement = statement


class SchemaError(FlinkcoreError, TypeError):
    """A column that is missing, has an unsupported type, or differs between files.

    Attributes
    ----------
    unknown : str or None
        Name that is neither a column nor a field; None for other errors.
    """

    def __init__(self, message: str, unknown: str | None = None) -> None:
        super().__init__(message)
        self.unknown = unknown


class InternalError(FlinkcoreError, RuntimeError):
    """A contradiction that flinkcore has found in its own work, such as an event that was counted twice.

    Its text asks for a report, as the result is wrong.
    """

    def __init__(self, message: str) -> None:
        # An error that is unpickled, or stands for one that cannot be, has the request already.
        super().__init__(message if message.endswith(_REPORT) else message + _REPORT)


_REPORT: Final = (
    ". This is a defect of flinkcore, and the result must not be used: please report this text, with the job and the "
    "log if you can"
)


class _PlacedError(FlinkcoreError):
    """Base of errors whose message names a place in the data, which attributes also have."""

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        split: Any = None,
        position: int | None = None,
        column: str | None = None,
        row: int | None = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.split = split
        self.position = position
        self.column = column
        self.row = row

    @property
    def place(self) -> dict[str, Any]:
        """The attributes that are known, by name: an error that quotes this one has the same."""
        names = ("file", "split", "position", "column", "row")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class DataError(_PlacedError, ValueError):
    """A row or a value that cannot be processed.

    Attributes
    ----------
    file : str or None
        Path or URI of the file; None if unknown, or if the data is not of a file.
    split : object or None
        Value of the split; None if unknown.
    position : int or None
        Number of the event in its split, from 0; None if unknown.
    column : str or None
        Name of the column; None if unknown.
    row : int or None
        Number of the row, from 0, in the file, or in the batch or table if the data is not of a file; None if unknown.
    """


class SourceError(_PlacedError, OSError):
    """A file that cannot be read (truncated, of another format, missing), or a directory that cannot be written.

    Attributes
    ----------
    file : str or None
        Path or URI of the file or the directory; None if unknown, or if the source is not a file.
    split, position, column, row
        As of :class:`DataError`.
    """


class CheckpointError(SourceError):
    """A checkpoint that is damaged, contradicts itself or the job, or cannot be read or written."""


class SavepointError(SourceError):
    """A savepoint of Flink that is damaged, or has a value that its column has no place for.

    Attributes
    ----------
    file : str or None
        Path or URI of the file.
    offset : int or None
        Position in the file, in bytes; None if unknown.
    """

    def __init__(self, message: str, *, file: str | None = None, offset: int | None = None) -> None:
        super().__init__(message, file=file)
        self.offset = offset


class UnsupportedSavepointError(SavepointError):
    """A savepoint, or a state in it, of a kind that flinkcore does not read; the message says what to do."""


class LateEventsWarning(UserWarning):
    """A replay has lost many events as late; the message names the likely cause and what to do."""


class RejectedRowsWarning(UserWarning):
    """A replay has rejected many rows, which ``on_bad_row`` allows; the message names the reasons and what to do."""


class LifecycleError(FlinkcoreError, RuntimeError):
    """A call on an object that is not open yet, or closed already."""


class JobCancelledError(FlinkcoreError, RuntimeError):
    """A result that does not exist, because the job was cancelled."""


class TimerError(FlinkcoreError, RuntimeError):
    """A callback of a processing-time timer failed; its cause is the callback's own exception.

    Attributes
    ----------
    timestamp_ms : int
        The time that the callback was registered for, in ms since the epoch.
    """

    def __init__(self, timestamp_ms: int, cause: BaseException) -> None:
        super().__init__(
            f"the callback of the processing-time timer at {timestamp_ms} ms failed: {in_words(cause)}"
        )
        self.timestamp_ms = timestamp_ms
        self.__cause__ = cause

    def __reduce__(self) -> tuple[Any, ...]:
        # The message stays that of the original cause, even if the cause is replaced where it cannot be unpickled.
        return type(self), (self.timestamp_ms, self.__cause__), {**self.__dict__, "args": self.args}


class UnsupportedOperationError(FlinkcoreError, NotImplementedError):
    """An operation that a class does not support."""


class UserCodeError(FlinkcoreError, RuntimeError):
    """A user's class or function that raised an exception, which is the cause, or returned an invalid value."""


class WorkerLostError(FlinkcoreError, RuntimeError):
    """A process that ran a task of a job on Spark, which ended before the task did."""


class OutOfMemoryError(FlinkcoreError, MemoryError):
    """Memory that a job asked for and did not get; the message names the process, its limit, and what helps."""


def innermost_cause(error: BaseException) -> BaseException:
    """Return what an exception goes back to: the last of its causes, or the one after which they repeat."""
    causes = [error]
    while (cause := causes[-1].__cause__) is not None and not any(cause is each for each in causes):
        causes.append(cause)
    return causes[-1]


def in_words(error: BaseException) -> str:
    """Return the type and the text of an exception for messages, even if its ``__str__`` fails."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception as failure:
        return f"{name} (whose text cannot be told: its __str__ raises {type(failure).__name__})"
    return f"{name}: {text}" if text else name
