"""The manifest of a checkpoint: what it consists of, as JSON with a checksum."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from flinkcore.errors import DataError, SourceError
from flinkcore.runtime.checkpoint.checkpoint_table import TableKind
from flinkcore.runtime.checkpoint.table_file import TableFile

FORMAT = "flinkcore checkpoint"
VERSION = 1
MANIFEST_NAME = re.compile(r"manifest-(\d{6,})\.json")
DATA_FOLDER = re.compile(r"data-[0-9a-f]{32}")


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
    def of_content(cls, content: Any) -> "OperatorPart":
        """Return the part of a JSON object; what is no part raises a KeyError, TypeError or ValueError."""
        key_groups = content["key_group_range"]
        return cls(
            content["uid"],
            content["subtask"],
            None if key_groups is None else (key_groups[0], key_groups[1]),
            content["watermark_ms"],
            tuple(_table(table) for table in content["tables"]),
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
        """Accept the parts if no operator lacks a subtask or a key group, and none is there twice.

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

    def to_json(self) -> bytes:
        """Return the manifest as the content of its file."""
        content = {
            "max_parallelism": self.max_parallelism,
            "written_ms": self.written_ms,
            "parts": [part.to_content() for part in self.parts],
            "job": self.job,
        }
        text = _canonical(content)
        head = {"format": FORMAT, "version": VERSION, "sha256": hashlib.sha256(text.encode()).hexdigest()}
        return json.dumps({**head, "checkpoint": content}, indent=1).encode()

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
        SourceError
            If it is no manifest, damaged, or of a newer version.
        """
        try:
            document = json.loads(data)
            is_ours = document["format"] == FORMAT
            version, content, sha256 = document["version"], document["checkpoint"], document["sha256"]
        except (ValueError, KeyError, TypeError) as failure:
            raise SourceError(f"{where} is damaged, or no manifest of a flinkcore checkpoint") from failure
        if not is_ours:
            raise SourceError(f"{where} is no manifest of a flinkcore checkpoint")
        if version != VERSION:
            raise SourceError(
                f"{where} is of the format version {version!r}, and this flinkcore reads version {VERSION}: "
                "use the flinkcore that wrote it, or a newer one"
            )
        if hashlib.sha256(_canonical(content).encode()).hexdigest() != sha256:
            raise SourceError(f"{where} is damaged: its checksum is not the one in it")
        try:
            manifest = cls(
                content["max_parallelism"],
                content["written_ms"],
                tuple(map(OperatorPart.of_content, content["parts"])),
                dict(content["job"]),
            )
            manifest.refuse_gaps()
        except (KeyError, TypeError, ValueError) as failure:
            raise SourceError(f"{where} describes no complete checkpoint: {failure}") from failure
        return manifest


def _canonical(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def _table(content: Any) -> TableFile:
    folder, _, name = content["file"].partition("/")
    if not DATA_FOLDER.fullmatch(folder) or "/" in name:
        raise ValueError(f"a file is outside of the checkpoint: {content['file']!r}")
    return TableFile(**{**content, "kind": TableKind(content["kind"])})


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
