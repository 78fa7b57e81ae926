"""The manifest of a checkpoint: all its parts and tables, as JSON with a checksum, checked when it is read."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from flinkcore._internal.values.timestamps import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore._native.timers import MAX_KEY_GROUPS
from flinkcore.checkpoint.declared_types import type_of_json
from flinkcore.checkpoint.table_file import TableFile
from flinkcore.checkpoint.table_kinds import NAMED, OF_KEYS, OPTIONAL_SHAPES, SHAPES, TableKind
from flinkcore.checkpoint.value_shape import check_shape
from flinkcore.datastream.state import StateDescriptor, StateTtlConfig
from flinkcore.errors import CheckpointError, DataError
from flinkcore.operators.state import DistributionMode


class JsonObject:
    """A JSON object from outside, with known members; errors name the member that is wrong.

    Parameters
    ----------
    content : object
        From `json.loads`.
    where : str
        The name of the object in messages.
    members : collection of str
        The members that it must have.
    optional : collection of str
        Further members that it may have.

    Raises
    ------
    DataError
        If it is not an object, lacks a member, or has an unknown one.
    """

    def __init__(
        self, content: Any, where: str, members: Collection[str], optional: Collection[str] = ()
    ) -> None:
        if type(content) is not dict:
            raise DataError(f"{where} is not a JSON object")
        for name in members:
            if name not in content:
                raise DataError(f"{where} lacks {name!r}")
        for name in content:
            if name not in members and name not in optional:
                raise DataError(f"{where} has the unknown member {name!r}")
        self._content: Mapping[str, Any] = content
        self._where = where

    def __getitem__(self, name: str) -> Any:
        """Return a member of any type."""
        return self._content[name]

    def integer(self, name: str, least: int = MIN_TIMESTAMP, greatest: int = MAX_TIMESTAMP) -> int:
        """Return an integer from `least` to `greatest`, inclusive."""
        value = self._content[name]
        if type(value) is not int or not least <= value <= greatest:
            raise self.refused(name, f"no integer from {least} to {greatest}")
        return value

    def integer_or_none(self, name: str, least: int = MIN_TIMESTAMP) -> int | None:
        """Return an integer from `least` on, or None for null."""
        return None if self._content[name] is None else self.integer(name, least)

    def text(self, name: str) -> str:
        """Return a text."""
        value = self._content[name]
        if type(value) is not str:
            raise self.refused(name, "no text")
        return value

    def items(self, name: str) -> list[Any]:
        """Return an array."""
        value = self._content[name]
        if type(value) is not list:
            raise self.refused(name, "no array")
        return value

    def refused(self, name: str, what: str) -> DataError:
        """Return the error to raise for an invalid member."""
        shown = repr(self._content[name])
        return DataError(
            f"{name} of {self._where} is {shown if len(shown) <= 80 else f'{shown[:79]}…'}, {what}"
        )


DATA_FOLDER = re.compile(r"data-[0-9a-f]{32}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

_DECLARED: Final = ("key_type", "value_type")
_MEMBERS = ("kind", "name", "file", "size", "sha256", "n_rows", "shapes", "attributes")


def table_of_content(content: Any, where: str) -> TableFile:
    """Return the entry of a table in a manifest.

    Parameters
    ----------
    content : object
        From `json.loads`.
    where : str
        The name of the entry in messages.

    Raises
    ------
    DataError
        If the entry is invalid.
    """
    entry = JsonObject(content, where, _MEMBERS)
    kinds = {kind.value: kind for kind in TableKind}
    if entry.text("kind") not in kinds:
        raise entry.refused("kind", f"none of {', '.join(kinds)}")
    kind = kinds[entry.text("kind")]
    folder, _, name = entry.text("file").partition("/")
    if not DATA_FOLDER.fullmatch(folder) or not name or "/" in name:
        raise entry.refused("file", "which is outside of the checkpoint")
    if not _SHA256.fullmatch(entry.text("sha256")):
        raise entry.refused("sha256", "no SHA-256 in hexadecimal digits")
    if entry.text("name") and kind not in NAMED:
        raise entry.refused("name", f"but a table of {kind.value} has no name")
    shapes = JsonObject(entry["shapes"], f"shapes of {where}", (), _shaped(kind))
    for column in SHAPES[kind]:
        if column not in entry["shapes"]:
            raise DataError(f"{where} lacks the shape of its column {column!r}")
    for column in entry["shapes"]:
        check_shape(shapes[column], f"shape of {column} of {where}")
    n_rows = entry.integer("n_rows", 0)
    _check_attributes(kind, n_rows, entry["attributes"], f"attributes of {where}")
    return TableFile(
        kind,
        entry.text("name"),
        entry.text("file"),
        entry.integer("size", 0),
        entry.text("sha256"),
        n_rows,
        entry["shapes"],
        entry["attributes"],
    )


def _shaped(kind: TableKind) -> Collection[str]:
    return (*SHAPES[kind], *OPTIONAL_SHAPES.get(kind, ()))


def _check_attributes(kind: TableKind, n_rows: int, content: Any, where: str) -> None:
    if kind is TableKind.TIMERS:
        domains = JsonObject(content, where, ("event_time", "processing_time"))
        counts = [_count(domains[name], f"{name} of {where}") for name in ("event_time", "processing_time")]
        if sum(counts) != n_rows:
            raise DataError(f"{where} are of {sum(counts)} timers, and the table has {n_rows} rows")
    elif kind is TableKind.KEYED_STATE:
        state = JsonObject(content, where, ("type", "ttl_time"), _DECLARED)
        if state["type"] not in [each.value for each in StateDescriptor.Type]:
            raise state.refused("type", "no kind known here of a keyed state")
        if state["ttl_time"] not in [None, *(each.name for each in StateTtlConfig.TtlTimeCharacteristic)]:
            raise state.refused("ttl_time", "no kind known here of a time to live")
        _check_declared(content, where)
    elif kind is TableKind.OPERATOR_STATE:
        mode = JsonObject(content, where, ("mode",), _DECLARED)
        if mode["mode"] not in [each.value for each in DistributionMode]:
            raise mode.refused("mode", "no kind known here of an operator state")
        _check_declared(content, where)
    elif kind is TableKind.WINDOWS:
        windows = JsonObject(content, where, ("kind", "earliest_end_ms", "latest_end_ms"))
        windows.text("kind")
        ends = [windows.integer_or_none(name) for name in ("earliest_end_ms", "latest_end_ms")]
        if (n_rows > 0) != all(end is not None for end in ends):
            raise DataError(f"{where} have the ends {ends}, and the table has {n_rows} rows")
    elif kind is TableKind.TIME_PLANE:
        times = ("watermark_ms", "input_watermark_ms", "operator_watermark_ms")
        optional = ("later_operators_ms", "until_ms")
        cut = JsonObject(content, where, ("last_arrival_ms", "opened_ms", *times), optional)
        for name in times:
            cut.integer(name)
        if "until_ms" in content:
            cut.integer("until_ms")
        if "later_operators_ms" in content:
            _check_later_operators(cut.items("later_operators_ms"), f"later_operators_ms of {where}")
        if (cut.integer_or_none("last_arrival_ms") is None) != (cut.integer_or_none("opened_ms") is None):
            raise DataError(f"{where} have one of last_arrival_ms and opened_ms")
    else:
        JsonObject(content, where, ())


def _check_declared(content: Any, where: str) -> None:
    for name in _DECLARED:
        type_of_json(content.get(name), f"{name} of {where}")


def _check_later_operators(content: list[Any], where: str) -> None:
    for number, watermarks in enumerate(content):
        if type(watermarks) is not list or not 2 <= len(watermarks) <= 3:
            raise DataError(f"{where}[{number}] is not the watermark of an operator and of one or two inputs")
        for each in watermarks:
            if type(each) is not int or not MIN_TIMESTAMP <= each <= MAX_TIMESTAMP:
                raise DataError(f"{where}[{number}] has {each!r:.80}, no watermark")


def _count(content: Any, where: str) -> int:
    if content == {"count": 0}:
        return 0
    extent = JsonObject(content, where, ("count", "earliest_ms", "latest_ms"))
    if extent.integer("earliest_ms") > extent.integer("latest_ms"):
        raise extent.refused("earliest_ms", "which is after latest_ms")
    return extent.integer("count", 1)


FORMAT = "flinkcore checkpoint"
VERSION = 2
MANIFEST_NAME = re.compile(r"manifest-(\d{6,18})\.json")
MAX_MANIFEST_BYTES: Final = 1 << 26
"""Enough for some 100,000 tables."""

_MAX_MANIFEST_VALUES: Final = 1 << 22
_TABLE_FILE = re.compile(rf"{DATA_FOLDER.pattern}/\d{{5,}}-\d{{3,}}-[0-9a-f]{{32}}\.arrow")


@dataclass(frozen=True)
class OperatorPart:
    """The tables that one subtask of an operator has written: small, to be sent from a task to the driver.

    Parameters
    ----------
    uid : str
        Identifier of the operator.
    subtask : int
        Index of the subtask.
    key_group_range : (int, int) or None
        First and last key group, inclusive; None for an operator without keys.
    watermark_ms : int
        Watermark of the operator, in ms since the epoch.
    tables : tuple of TableFile
    """

    uid: str
    subtask: int
    key_group_range: tuple[int, int] | None
    watermark_ms: int
    tables: tuple[TableFile, ...]

    def tables_of(self, kind: TableKind) -> list[TableFile]:
        """Return the tables of a kind."""
        return [table for table in self.tables if table.kind is kind]

    def to_content(self) -> dict[str, Any]:
        """Return the part as a JSON object, to be sent to the driver."""
        content = asdict(self)
        for table in content["tables"]:
            table["kind"] = table["kind"].value
        return content

    @classmethod
    def of_content(cls, content: Any, where: str = "the part") -> "OperatorPart":
        """Return the part of a JSON object.

        Parameters
        ----------
        content : object
            From `to_content`.
        where : str
            The name of the object in messages.

        Raises
        ------
        DataError
            If the part is invalid.
        """
        part = JsonObject(content, where, ("uid", "subtask", "key_group_range", "watermark_ms", "tables"))
        if not part.text("uid"):
            raise part.refused("uid", "no name of an operator")
        key_groups = part["key_group_range"]
        if key_groups is not None and (
            len(part.items("key_group_range")) != 2
            or any(type(each) is not int for each in key_groups)
            or not 0 <= key_groups[0] <= key_groups[1] < MAX_KEY_GROUPS
        ):
            raise part.refused("key_group_range", "no first and last key group")
        return cls(
            part.text("uid"),
            part.integer("subtask", 0),
            None if key_groups is None else (key_groups[0], key_groups[1]),
            part.integer("watermark_ms"),
            tuple(
                table_of_content(table, f"tables[{number}] of {where}")
                for number, table in enumerate(part.items("tables"))
            ),
        )


@dataclass(frozen=True)
class CheckpointManifest:
    """The parts of a checkpoint, and the settings of its job.

    Parameters
    ----------
    max_parallelism : int
        The number of key groups.
    written_ms : int
        When it was completed, in ms since the epoch.
    parts : tuple of OperatorPart
        One for each subtask of each operator.
    job : dict of str to object
        Settings that a resumed job must have, too; a JSON object.
    """

    max_parallelism: int
    written_ms: int
    parts: tuple[OperatorPart, ...]
    job: dict[str, Any] = field(default_factory=dict)

    def parts_by_operator(self) -> dict[str, list[OperatorPart]]:
        """Return the parts by uid of their operator, in order of subtasks."""
        found: dict[str, list[OperatorPart]] = defaultdict(list)
        for part in sorted(self.parts, key=lambda part: (part.uid, part.subtask)):
            found[part.uid].append(part)
        return dict(found)

    def refuse_gaps(self) -> None:
        """Check that every operator has each subtask, key group and table exactly once.

        Raises
        ------
        DataError
            If one is missing, or is there twice.
        """
        for uid, parts in self.parts_by_operator().items():
            subtasks = [part.subtask for part in parts]
            if subtasks != list(range(len(parts))):
                raise DataError(
                    f"the parts of the operator {uid!r} are those of the subtasks {subtasks}: each from 0 on is "
                    "needed once"
                )
            ranges = [part.key_group_range for part in parts if part.key_group_range is not None]
            if not ranges:
                continue
            if len(ranges) < len(parts):
                raise DataError(f"some parts of the operator {uid!r} have key groups, and some have none")
            _refuse_key_group_gaps(uid, ranges, self.max_parallelism)
        _refuse_wrong_tables(self.parts)

    def refuse_left_out_files(self, files: Iterable[str]) -> None:
        """Check that all files in the folder are listed that the attempts of the parts have written.

        Files of other attempts, which could not be removed, are ignored.

        Parameters
        ----------
        files : iterable of str
            Names with that of the folder.

        Raises
        ------
        DataError
            If a file is not listed.
        """
        listed = {table.file for part in self.parts for table in part.tables}
        attempts = {_attempt_of(file) for file in listed}
        for file in sorted(files):
            if file not in listed and _TABLE_FILE.fullmatch(file) and _attempt_of(file) in attempts:
                raise DataError(f"the table in {file} is not listed, and others of its subtask are")

    def to_json(self) -> bytes:
        """Return the manifest as JSON.

        Raises
        ------
        DataError
            If there are more tables than a manifest can list.
        """
        content = {
            "max_parallelism": self.max_parallelism,
            "written_ms": self.written_ms,
            "parts": [part.to_content() for part in self.parts],
            "n_tables": self._table_counts(),
            "job": self.job,
        }
        text = _canonical(content)
        head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        data = json.dumps({**head, "checkpoint": content}, indent=1).encode()
        if len(data) > MAX_MANIFEST_BYTES or _values_at_most(data) > _MAX_MANIFEST_VALUES:
            n_tables = sum(len(part.tables) for part in self.parts)
            raise DataError(
                f"a manifest of {len(self.parts):,} parts with {n_tables:,} tables has {len(data):,} bytes, and "
                f"{MAX_MANIFEST_BYTES:,} are the most. Write the checkpoint with fewer partitions"
            )
        return data

    @classmethod
    def of_json(cls, data: bytes, where: str) -> "CheckpointManifest":
        """Return the manifest of a JSON text.

        Parameters
        ----------
        data : bytes
        where : str
            The name of the file in messages.

        Raises
        ------
        CheckpointError
            If it is not a manifest, damaged, describes no complete checkpoint, or is of a newer version.
        """
        try:
            if _values_at_most(data) > _MAX_MANIFEST_VALUES:
                raise ValueError("it has more values than any manifest")
            document = json.loads(data)
            is_ours = document["format"] == FORMAT
            version, content, sha256 = document["version"], document["checkpoint"], document["sha256"]
            checksum = hashlib.sha256(_canonical(content).encode()).hexdigest()
        except (ValueError, KeyError, TypeError, RecursionError) as failure:
            raise CheckpointError(
                f"{where} is damaged, or no manifest of a flinkcore checkpoint", file=where
            ) from failure
        if not is_ours:
            raise CheckpointError(f"{where} is not a manifest of a flinkcore checkpoint", file=where)
        if version != VERSION:
            raise CheckpointError(
                f"{where} is of the format version {version!r}, and this flinkcore reads version {VERSION}: "
                "use the flinkcore that wrote it, or a newer one",
                file=where,
            )
        if checksum != sha256:
            raise CheckpointError(f"{where} is damaged: its checksum is not the one in it", file=where)
        try:
            manifest = cls._of_content(content)
            manifest.refuse_gaps()
            manifest._refuse_other_counts(content["n_tables"])
        except (DataError, RecursionError) as failure:
            raise CheckpointError(
                f"{where} describes no complete checkpoint: {failure}", file=where
            ) from failure
        return manifest

    @classmethod
    def _of_content(cls, content: Any) -> "CheckpointManifest":
        members = ("max_parallelism", "written_ms", "parts", "n_tables", "job")
        checkpoint = JsonObject(content, "the checkpoint", members)
        parts = tuple(
            OperatorPart.of_content(part, f"parts[{number}]")
            for number, part in enumerate(checkpoint.items("parts"))
        )
        job = checkpoint["job"]
        if type(job) is not dict or not all(map(_is_setting, job.values())):
            raise checkpoint.refused("job", "no texts or lists of texts by the names of settings")
        return cls(
            checkpoint.integer("max_parallelism", 1, MAX_KEY_GROUPS),
            checkpoint.integer("written_ms"),
            parts,
            job,
        )

    def _table_counts(self) -> dict[str, list[int]]:
        """Return how many tables each subtask of an operator has written, so that none can be left out unnoticed.

        Some tables are there only if a job had something to write, and of some operators whole parts.
        """
        return {uid: [len(part.tables) for part in parts] for uid, parts in self.parts_by_operator().items()}

    def _refuse_other_counts(self, content: Any) -> None:
        listed = self._table_counts()
        written = JsonObject(content, "n_tables of the checkpoint", listed)
        for uid, counts in listed.items():
            if written.items(uid) != counts:
                raise written.refused(
                    uid,
                    f"and {counts} are listed: a table or a subtask is left out, or is that of another one",
                )


def _values_at_most(data: bytes) -> int:
    """Return an upper bound of the number of values in a JSON text, which bounds the memory of its Python objects."""
    return sum(map(data.count, (b",", b"[", b"{")))


def _is_setting(value: Any) -> bool:
    return type(value) is str or (type(value) is list and all(type(each) is str for each in value))


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def table_file_name(subtask: int, number: int, attempt: str) -> str:
    """Return the name of the file of a table, by its index in the part."""
    return f"{subtask:05d}-{number:03d}-{attempt}.arrow"


def _attempt_of(file: str) -> str:
    return file.rpartition("-")[2]


def _refuse_wrong_tables(parts: Sequence[OperatorPart]) -> None:
    folders: set[str] = set()
    attempts: set[str] = set()
    for part in parts:
        what = f"the subtask {part.subtask} of the operator {part.uid!r}"
        names: set[tuple[TableKind, str]] = set()
        for number, table in enumerate(part.tables):
            if (table.kind, table.name) in names:
                raise DataError(f"{what} has its {table} twice")
            names.add((table.kind, table.name))
            if part.key_group_range is None and table.kind in OF_KEYS:
                raise DataError(f"{what} has no key groups, but {table}")
            folder, _, name = table.file.partition("/")
            folders.add(folder)
            # The number of the subtask may have changed: a partition whose state has spilled writes several parts.
            written_by, _, _ = part.tables[0].file.partition("/")[2].partition("-")
            if name != f"{written_by}-{number:03d}-{_attempt_of(part.tables[0].file)}":
                raise DataError(
                    f"{what} has the {table} in {table.file}, which is not its file number {number}: a table is left "
                    "out, or is that of another subtask"
                )
        if part.tables:
            attempt = _attempt_of(part.tables[0].file)
            if attempt in attempts:
                raise DataError(f"{what} has files of another part")
            attempts.add(attempt)
    if len(folders) > 1:
        raise DataError(f"the tables are in {len(folders)} folders, and those of a checkpoint are in one")


def _refuse_key_group_gaps(uid: str, ranges: Sequence[tuple[int, int]], max_parallelism: int) -> None:
    expected = 0
    for first, last in sorted(ranges):
        if first != expected:
            what = f"{expected} to {first - 1} are missing" if first > expected else f"{first} is there twice"
            raise DataError(
                f"of the key groups of the operator {uid!r}, {what}: a part of it is lost or doubled"
            )
        expected = last + 1
    if expected != max_parallelism:
        raise DataError(
            f"the parts of the operator {uid!r} have the key groups 0 to {expected - 1}, but there are "
            f"{max_parallelism} (max_parallelism): a part of it is lost or of another job"
        )


def newest_manifest(names: Iterable[str]) -> tuple[int, str] | None:
    """Return number and name of the newest manifest of a directory, or None."""
    numbers = [(int(match[1]), name) for name in names if (match := MANIFEST_NAME.fullmatch(name))]
    return max(numbers, default=None)
