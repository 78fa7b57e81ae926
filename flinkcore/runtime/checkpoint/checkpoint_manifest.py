"""The manifest of a checkpoint: what it consists of, as JSON with a checksum."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from flinkcore._native.timers import MAX_KEY_GROUPS
from flinkcore.errors import CheckpointError, DataError
from flinkcore.runtime.checkpoint.checkpoint_table import TableKind
from flinkcore.runtime.checkpoint.json_object import JsonObject
from flinkcore.runtime.checkpoint.table_content import DATA_FOLDER, table_of_content
from flinkcore.runtime.checkpoint.table_file import TableFile

FORMAT = "flinkcore checkpoint"
VERSION = 1
MANIFEST_NAME = re.compile(r"manifest-(\d{6,18})\.json")
MAX_MANIFEST_BYTES: Final = 1 << 26
"""Those of some 100,000 tables."""

_MAX_MANIFEST_VALUES: Final = 1 << 22
_TABLE_FILE = re.compile(rf"{DATA_FOLDER.pattern}/\d{{5,}}-\d{{3,}}-[0-9a-f]{{32}}\.arrow")
_OF_KEYS = (TableKind.TIMERS, TableKind.KEYED_STATE, TableKind.WINDOWS)


@dataclass(frozen=True)
class OperatorPart:
    """What one subtask of an operator has written: small, to be sent from a task to the driver.

    Parameters
    ----------
    uid : str
        Of the operator.
    subtask : int
        From 0 on.
    key_group_range : (int, int) or None
        First and last key group, inclusive; None for an operator without keys.
    watermark_ms : int
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
        """Return the part as a JSON object, as a task sends it to the driver."""
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
            As `to_content` gave it.
        where : str
            Names the object in messages.

        Raises
        ------
        DataError
            If it is no part; names what is wrong.
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
    """All parts of a checkpoint.

    Parameters
    ----------
    max_parallelism : int
        The number of key groups.
    written_ms : int
        When it was completed, in ms since the epoch.
    parts : tuple of OperatorPart
        By operator and subtask.
    job : dict of str to object
        What the job says of itself, and a job that goes on from here must say too; a JSON object.
    """

    max_parallelism: int
    written_ms: int
    parts: tuple[OperatorPart, ...]
    job: dict[str, Any] = field(default_factory=dict)

    def parts_by_operator(self) -> dict[str, list[OperatorPart]]:
        """Return the parts by the uid of their operator, in order of subtasks."""
        found: dict[str, list[OperatorPart]] = defaultdict(list)
        for part in sorted(self.parts, key=lambda part: (part.uid, part.subtask)):
            found[part.uid].append(part)
        return dict(found)

    def refuse_gaps(self) -> None:
        """Accept the parts if no operator lacks a subtask, a key group or a table, and none is there twice.

        Raises
        ------
        DataError
            If not so.
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
        """Accept the files of the folder if all are listed that a part's attempt has written.

        Files of other attempts may be there, if they could not be removed.

        Parameters
        ----------
        files : iterable of str
            By their names with that of the folder.

        Raises
        ------
        DataError
            If a part lacks one.
        """
        listed = {table.file for part in self.parts for table in part.tables}
        attempts = {_attempt_of(file) for file in listed}
        for file in sorted(files):
            if file not in listed and _TABLE_FILE.fullmatch(file) and _attempt_of(file) in attempts:
                raise DataError(f"the table in {file} is not listed, and others of its subtask are")

    def to_json(self) -> bytes:
        """Return the manifest as the content of its file.

        Raises
        ------
        DataError
            If there are more tables than a manifest can list.
        """
        content = {
            "max_parallelism": self.max_parallelism,
            "written_ms": self.written_ms,
            "parts": [part.to_content() for part in self.parts],
            "job": self.job,
        }
        text = _canonical(content)
        head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        data = json.dumps({**head, "checkpoint": content}, indent=1).encode()
        if len(data) > MAX_MANIFEST_BYTES or _values_at_most(data) > _MAX_MANIFEST_VALUES:
            n_tables = sum(len(part.tables) for part in self.parts)
            raise DataError(
                f"a manifest of {len(self.parts):,} parts with {n_tables:,} tables has {len(data):,} bytes, and "
                f"{MAX_MANIFEST_BYTES:,} are the most: write the checkpoint with fewer partitions"
            )
        return data

    @classmethod
    def of_json(cls, data: bytes, where: str) -> "CheckpointManifest":
        """Return the manifest of a file's content.

        Parameters
        ----------
        data : bytes
        where : str
            Names the file in messages.

        Raises
        ------
        CheckpointError
            If it is no manifest, damaged, describes no complete checkpoint, or is of a newer version.
        """
        try:
            if _values_at_most(data) > _MAX_MANIFEST_VALUES:
                raise ValueError("it has more values than any manifest")
            document = json.loads(data)
            is_ours = document["format"] == FORMAT
            version, content, sha256 = document["version"], document["checkpoint"], document["sha256"]
        except (ValueError, KeyError, TypeError, RecursionError) as failure:
            raise CheckpointError(
                f"{where} is damaged, or no manifest of a flinkcore checkpoint"
            ) from failure
        if not is_ours:
            raise CheckpointError(f"{where} is no manifest of a flinkcore checkpoint")
        if version != VERSION:
            raise CheckpointError(
                f"{where} is of the format version {version!r}, and this flinkcore reads version {VERSION}: "
                "use the flinkcore that wrote it, or a newer one"
            )
        try:
            checksum = hashlib.sha256(_canonical(content).encode()).hexdigest()
        except (ValueError, RecursionError) as failure:
            raise CheckpointError(
                f"{where} is damaged, or no manifest of a flinkcore checkpoint"
            ) from failure
        if checksum != sha256:
            raise CheckpointError(f"{where} is damaged: its checksum is not the one in it")
        try:
            manifest = cls._of_content(content)
            manifest.refuse_gaps()
        except (DataError, RecursionError) as failure:
            raise CheckpointError(f"{where} describes no complete checkpoint: {failure}") from failure
        return manifest

    @classmethod
    def _of_content(cls, content: Any) -> "CheckpointManifest":
        checkpoint = JsonObject(content, "the checkpoint", ("max_parallelism", "written_ms", "parts", "job"))
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


def _values_at_most(data: bytes) -> int:
    """Return how many values a JSON text has, or more: what it takes as Python objects is bounded by it."""
    return sum(map(data.count, (b",", b"[", b"{")))


def _is_setting(value: Any) -> bool:
    return type(value) is str or (type(value) is list and all(type(each) is str for each in value))


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def table_file_name(subtask: int, number: int, attempt: str) -> str:
    """Return the name of the file of a table, whose number is from 0 on in its part."""
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
            if part.key_group_range is None and table.kind in _OF_KEYS:
                raise DataError(f"{what} has no key groups, but {table}")
            folder, _, name = table.file.partition("/")
            folders.add(folder)
            if name != table_file_name(
                part.subtask, number, _attempt_of(part.tables[0].file)[: -len(".arrow")]
            ):
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
    """Return number and name of the manifest that counts in a directory; None where there is none."""
    numbers = [(int(match[1]), name) for name in names if (match := MANIFEST_NAME.fullmatch(name))]
    return max(numbers, default=None)
