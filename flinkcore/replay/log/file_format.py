"""What every file format of an event log offers, and how its faults are named."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from flinkcore.errors import FlinkcoreError, SourceError
from flinkcore.replay.log.columns_to_read import ColumnsToRead
from flinkcore.replay.log.files import LogFile

_MAY_NOT_READ = "Give this process, and on Spark the executors, the right to read it"
_REMEDIES = {
    errno.EACCES: _MAY_NOT_READ,
    errno.EPERM: _MAY_NOT_READ,
    errno.ENOENT: "It was there when the files of the log were listed: let nothing remove them while the log is read",
    errno.ENOTDIR: "It was there when the files of the log were listed: let nothing remove them while the log is read",
    errno.EIO: "The disk or the network file system has failed: look after it, or copy the file",
    errno.ESTALE: "The disk or the network file system has failed: look after it, or copy the file",
    errno.EMFILE: "Let the process have more files open at once (ulimit -n)",
}
"""Where the file system has refused, which says nothing of what is in the file."""


class FileFormat(Protocol):
    """What an event log asks of a file format; implementations are small and picklable."""

    name: str

    def schema(self, file: LogFile) -> pa.Schema | None:
        """Return the plain schema from the footer or the first block; None if the file is empty and has
        none."""

    def pieces(self, file: LogFile) -> list[int | None]:
        """Return the rows of each piece (row group, record batch) that can be read alone, None where not
        known.

        A format that cannot be cut gives one piece.
        """

    def batches(
        self, file: LogFile, pieces: range | None, columns: ColumnsToRead
    ) -> Iterator[pa.RecordBatch]:
        """Stream the given pieces (None: all) in order, with bounded memory.

        The batches hold at least the given columns, in any order and encoding; the file's own are checked
        first. Their values are checked, too: what takes a batch may follow its lengths, offsets and indices.
        """


@contextmanager
def source_faults(name: str, advice: str) -> Iterator[None]:
    """Turn what pyarrow and the filesystem raise into a SourceError that names the file and what to do."""
    try:
        yield
    except pa.ArrowMemoryError as error:
        # A size that the file tells, which may be a lie, or a block too large for this machine.
        raise SourceError(
            f"{name} cannot be read: a part of it asks for more memory than there is ({error}). {advice}"
        ) from error
    except (FlinkcoreError, MemoryError):
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError) as error:
        told = " ".join(str(error).split()).rstrip(". ")
        advice = _REMEDIES.get(getattr(error, "errno", None) or 0, advice)
        raise SourceError(f"{name} cannot be read: {told}. {advice}") from error
