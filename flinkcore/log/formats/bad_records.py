"""Records of text files that cannot be read: found among sound ones by halving the block that they are in."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from flinkcore._internal.arrow.column_ops import HIDDEN_PREFIX

BAD_RECORD: Final = f"{HIDDEN_PREFIX}bad record"
"""Column of rows that are not events: all their other columns are null."""
BAD_RECORD_TYPE: Final = pa.struct({"line": pa.int64(), "text": pa.string(), "reason": pa.string()})
"""The line in the file, counted from 1; the record as it is there; and why it cannot be read."""

_PLACES: Final = re.compile(
    r"^(CSV|JSON) parse error: |^In CSV column #\d+: |\bRow #\d+: |[.]? in row \d+$|(?<=columns, got )(\d+): .*$",
    re.S,
)
"""Parts of Arrow's messages that are left out: the row, which is known more exactly, and its text."""


class Record(NamedTuple):
    """A record of a text file: mostly one line.

    Attributes
    ----------
    line : int
        Number of its first line in the file, from 1.
    text : bytes
        The record with its line break.
    """

    line: int
    text: bytes


class SoundRecords(NamedTuple):
    """Records that follow each other, and the rows that they are."""

    text: bytes
    rows: pa.Table


class BadRecord(NamedTuple):
    """A record that cannot be read, and why."""

    record: Record
    reason: str


def records_of(block: bytes, first_line: int, quoted: bool = False) -> list[Record]:
    """Cut a block of whole lines into its records, without blank lines.

    Parameters
    ----------
    block : bytes
    first_line : int
        Number of the block's first line in the file.
    quoted : bool
        Whether a line break within quotes belongs to a value. The last record may then lack its end.
    """
    records: list[Record] = []
    opened: list[bytes] = []
    for line, text in enumerate(block.splitlines(keepends=True), first_line):
        if opened:
            opened.append(text)
        elif text.strip():
            records.append(Record(line, text))
        if quoted and text.count(b'"') % 2:
            if len(opened) > 1:
                records[-1] = records[-1]._replace(text=b"".join(opened))
            opened = [] if opened else [text]
    if len(opened) > 1:
        records[-1] = records[-1]._replace(text=b"".join(opened))
    return records


def examined(
    records: Sequence[Record], parse: Callable[[bytes], pa.Table]
) -> Iterator[SoundRecords | BadRecord]:
    """Yield all records in their order, as rows or with the reason why they cannot be read.

    Parameters
    ----------
    records : sequence of Record
    parse : callable
        Returns the rows of some records; raises pyarrow.ArrowInvalid if one of them cannot be read.
    """
    if not records:
        return
    text = b"".join(record.text for record in records)
    try:
        yield SoundRecords(text, parse(text))
    except pa.ArrowInvalid as error:
        if len(records) == 1:
            yield BadRecord(records[0], _PLACES.sub(r"\2", str(error)).strip())
            return
        half = len(records) // 2
        yield from examined(records[:half], parse)
        yield from examined(records[half:], parse)


def rows_with_bad_records(parts: Iterable[SoundRecords | BadRecord], schema: pa.Schema) -> pa.Table:
    """Return records as rows with the column `BAD_RECORD`, which is null for sound ones.

    Parameters
    ----------
    parts : iterable of SoundRecords or BadRecord
    schema : pyarrow.Schema
        Columns of sound records.
    """
    tables = []
    for part in parts:
        if isinstance(part, SoundRecords):
            columns, fault = (
                part.rows.select(schema.names).columns,
                pa.nulls(part.rows.num_rows, BAD_RECORD_TYPE),
            )
        else:
            columns = [pa.nulls(1, field.type) for field in schema]
            text = part.record.text.rstrip(b"\r\n").decode(errors="replace")
            fault = pa.array(
                [{"line": part.record.line, "text": text, "reason": part.reason}], BAD_RECORD_TYPE
            )
        tables.append(pa.table([*columns, fault], [*schema.names, BAD_RECORD]))
    empty = schema.append(pa.field(BAD_RECORD, BAD_RECORD_TYPE)).empty_table()
    return pa.concat_tables(tables).combine_chunks() if tables else empty
