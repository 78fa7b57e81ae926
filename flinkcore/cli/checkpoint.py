"""The command `flinkcore checkpoint`, which prints the content of a checkpoint."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from flinkcore._internal.show.times import format_timestamp
from flinkcore.checkpoint import Checkpoint, OperatorPart
from flinkcore.checkpoint.checkpoint_manifest import VERSION
from flinkcore.checkpoint.table_file import TableFile, refused_as
from flinkcore.checkpoint.table_kinds import TableKind
from flinkcore.checkpoint.value_shape import Shape, shape_text
from flinkcore.cli.shown_state import add_options, check_options
from flinkcore.columnar.operator_plans.aggregate_contents import is_contents
from flinkcore.common import MAX_TIMESTAMP, MIN_TIMESTAMP
from flinkcore.datastream.state import StateDescriptor
from flinkcore.errors import ConfigurationError
from flinkcore.operators.state import DistributionMode, KeyedStateSnapshot, SerializedValue
from flinkcore.operators.state.time_to_live import map_values
from flinkcore.time_plane.time_cut import TimeCut


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    checkpoint = commands.add_parser("checkpoint", help="see what is in a checkpoint")
    actions = checkpoint.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="print what a checkpoint consists of, or the entries of a state")
    add_options(show, "checkpoint", limited="entries or splits")
    show.set_defaults(call=show_checkpoint)


def show_checkpoint(arguments: argparse.Namespace) -> None:
    """Run `flinkcore checkpoint show`.

    Raises
    ------
    CheckpointError
        If there is no checkpoint, or it is damaged or contradicts itself.
    ConfigurationError
        If there is no such operator or state, or several operators have the state.
    """
    check_options(arguments)
    checkpoint = Checkpoint.open(arguments.path)
    operators = _operators(checkpoint, arguments.operator)
    if arguments.state is None:
        lines = _overview(checkpoint, operators, arguments.limit)
    else:
        lines = _entries(checkpoint, operators, arguments.state, arguments.key, arguments.limit)
    for line in lines:
        print(line)


def _operators(checkpoint: Checkpoint, uid: str | None) -> dict[str, list[OperatorPart]]:
    operators = checkpoint.manifest.parts_by_operator()
    if uid is None:
        return operators
    if uid not in operators:
        raise ConfigurationError(f"there is no operator {uid!r}; there are {list(operators)}")
    return {uid: operators[uid]}


def _overview(checkpoint: Checkpoint, operators: dict[str, list[OperatorPart]], limit: int) -> Iterator[str]:
    manifest = checkpoint.manifest
    yield f"checkpoint {checkpoint.storage.path}"
    yield (
        f"written {format_timestamp(manifest.written_ms)}, format version {VERSION}, "
        f"{manifest.max_parallelism} key groups"
    )
    for setting, value in manifest.job.items():
        if value and not is_contents(setting):
            yield f"{setting}: {', '.join(value) if isinstance(value, list) else value}"
    for uid, parts in operators.items():
        yield ""
        yield f"operator {uid!r}: {_count(len(parts), 'subtask')}, {_watermarks(parts)}"
        for kind, lines_of in (
            (TableKind.KEYED_STATE, _keyed_state_lines),
            (TableKind.TIMERS, _timer_lines),
            (TableKind.OPERATOR_STATE, _operator_state_lines),
            (TableKind.RELATION, _relation_lines),
        ):
            names = {table.name: None for part in parts for table in part.tables_of(kind)}
            for name in names:
                yield from lines_of(
                    name,
                    [(part, table) for part in parts for table in part.tables_of(kind) if table.name == name],
                )
        if any(part.tables_of(TableKind.SPLITS) for part in parts):
            yield from _split_lines(checkpoint, uid, limit)
        if any(part.tables_of(TableKind.TIME_PLANE) for part in parts):
            yield from _time_plane_lines(checkpoint, uid, limit)
        waiting = sum(table.n_rows for table in checkpoint.waiting_rows(uid))
        if waiting:
            yield f"  {_count(waiting, 'event')} waiting for paused splits"
        if any(part.tables_of(TableKind.WINDOWS) for part in parts):
            yield from _window_lines(parts)


def _keyed_state_lines(name: str, tables: Sequence[tuple[OperatorPart, TableFile]]) -> Iterator[str]:
    attributes = tables[0][1].attributes
    kind, ttl_time = attributes["type"], attributes["ttl_time"]
    values = [
        _unstamped(kind, table.shapes["value"]) if ttl_time else table.shapes["value"] for _, table in tables
    ]
    ttl = f", time to live in {_words(ttl_time)}" if ttl_time else ""
    n_rows = sum(table.n_rows for _, table in tables)
    yield (
        f"  {kind} state {name!r}: {_types(values)} by {_types(table.shapes['key'] for _, table in tables)}{ttl}, "
        f"{_count(n_rows, 'entry', 'entries')}"
    )
    if len(tables) > 1:
        for part, table in tables:
            yield f"    {_key_groups(part)}: {table.n_rows:,}"


def _timer_lines(name: str, tables: Sequence[tuple[OperatorPart, TableFile]]) -> Iterator[str]:
    if not sum(table.n_rows for _, table in tables):
        yield f"  timers {name!r}: none"
        return
    yield f"  timers {name!r}: by {_types(table.shapes['key'] for _, table in tables)}"
    for domain in ("event_time", "processing_time"):
        extents = [table.attributes[domain] for _, table in tables]
        counts = [extent["count"] for extent in extents]
        if not sum(counts):
            yield f"    {_words(domain)}: none"
            continue
        earliest = min(extent["earliest_ms"] for extent in extents if extent["count"])
        latest = max(extent["latest_ms"] for extent in extents if extent["count"])
        span = (
            f"from {_moment(earliest)} to {_moment(latest)}" if latest > earliest else f"at {_moment(latest)}"
        )
        yield f"    {_words(domain)}: {sum(counts):,}, {span}"
        if len(tables) > 1:
            for (part, _), count in zip(tables, counts, strict=True):
                yield f"      {_key_groups(part)}: {count:,}"


def _operator_state_lines(name: str, tables: Sequence[tuple[OperatorPart, TableFile]]) -> Iterator[str]:
    mode = tables[0][1].attributes["mode"]
    shapes = _types(table.shapes["element"] for _, table in tables)
    if mode == DistributionMode.BROADCAST.value:
        yield f"  broadcast state {name!r}: {shapes}, {_count(tables[0][1].n_rows, 'entry', 'entries')}"
    else:
        n_rows = sum(table.n_rows for _, table in tables)
        yield f"  operator state {name!r} ({mode}): {shapes}, {_count(n_rows, 'element')}"


def _split_lines(checkpoint: Checkpoint, uid: str, limit: int) -> Iterator[str]:
    splits = checkpoint.splits(uid)
    yield f"  {_count(len(splits), 'split')}"
    for split in splits[:limit]:
        state = "" if split.state is None else f", state {_text(split.state)}"
        yield f"    {_text(split.split)}: position {_text(split.position)}{state}"
    if len(splits) > limit:
        yield f"    … {len(splits) - limit:,} more"


def _time_plane_lines(checkpoint: Checkpoint, uid: str, limit: int) -> Iterator[str]:
    table = checkpoint.time_plane(uid)
    with refused_as(f"{checkpoint.storage.path}, operator {uid!r}"):
        cut = TimeCut.of_table(table)
    last_ms, n_rows = cut.last_arrival_ms, len(cut.split_values)
    until = "" if cut.until_ms is None else f", cut at the arrival {format_timestamp(cut.until_ms)}"
    last = "none" if last_ms is None else format_timestamp(last_ms)
    yield f"  last arrival {last}{until}, {_count(n_rows, 'split')}"
    columns = [cut.columns[name].tolist() for name in ("rows", "last_arrival_ms", "watermark_ms")]
    idle = cut.columns["operator_idle"].tolist()
    held = [""] * n_rows
    if cut.generators is not None:
        held = [f", generator {_shortened(_text(state))}" for state in cut.generators]
    for split, rows, arrival_ms, watermark_ms, is_idle, generator in islice(
        zip(cut.split_values, *columns, idle, held, strict=True), limit
    ):
        arrived = "" if arrival_ms == MIN_TIMESTAMP else f", last arrival {format_timestamp(arrival_ms)}"
        name = "the log" if split is None else _text(split)
        yield (
            f"    {name}: {_count(rows, 'row')}{arrived}, watermark {format_timestamp(watermark_ms)}"
            f"{', idle' if is_idle else ''}{generator}"
        )
    if n_rows > limit:
        yield f"    … {n_rows - limit:,} more"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _relation_lines(name: str, tables: Sequence[tuple[OperatorPart, TableFile]]) -> Iterator[str]:
    yield f"  rows {name!r}: {sum(table.n_rows for _, table in tables):,}"


def _window_lines(parts: Sequence[OperatorPart]) -> Iterator[str]:
    tables = [(part, table) for part in parts for table in part.tables_of(TableKind.WINDOWS)]
    n_rows = sum(table.n_rows for _, table in tables)
    if not n_rows:
        yield "  windows: none"
        return
    earliest = min(table.attributes["earliest_end_ms"] for _, table in tables if table.n_rows)
    latest = max(table.attributes["latest_end_ms"] for _, table in tables if table.n_rows)
    span = f"from {_moment(earliest)} to {_moment(latest)}" if latest > earliest else f"at {_moment(latest)}"
    yield f"  {_count(n_rows, 'live window')} of a key, ending {span}"
    if len(tables) > 1:
        for part, table in tables:
            yield f"    {_key_groups(part)}: {table.n_rows:,}"


def _entries(
    checkpoint: Checkpoint, operators: dict[str, list[OperatorPart]], name: str, key: str | None, limit: int
) -> Iterator[str]:
    kinds = {
        (uid, table.kind)
        for uid, parts in operators.items()
        for part in parts
        for table in part.tables
        if table.name == name and table.kind in (TableKind.KEYED_STATE, TableKind.OPERATOR_STATE)
    }
    if not kinds:
        raise ConfigurationError(f"there is no state {name!r}; `flinkcore checkpoint show DIR` lists all")
    if len(kinds) > 1:
        raise ConfigurationError(
            f"several operators have a state {name!r}: {sorted(uid for uid, _ in kinds)}; choose one with --operator"
        )
    ((uid, kind),) = kinds
    if kind is TableKind.KEYED_STATE:
        rows = _keyed_rows(checkpoint.keyed_state(uid, name), key)
    else:
        elements = checkpoint.operator_states(uid, 1)[0][name]
        rows = _operator_rows(elements.elements, elements.mode is DistributionMode.BROADCAST, key)
    yield from islice(rows, limit)
    if more := sum(1 for _ in rows):
        yield f"… {more:,} more"


def _keyed_rows(snapshots: Iterable[KeyedStateSnapshot], key: str | None) -> Iterator[str]:
    for snapshot in snapshots:
        for entry_key, namespace, held in snapshot.entries():
            if key is None or key in _names(entry_key):
                window = "" if namespace is None else f" in {namespace!r}"
                value = held if snapshot.ttl_time is None else map_values(snapshot.type, held, _Stamped)
                yield f"{_text(entry_key)}{window}: {_value_text(value)}"


def _operator_rows(elements: Sequence[Any], are_pairs: bool, key: str | None) -> Iterator[str]:
    if not are_pairs:
        if key is not None:
            raise ConfigurationError("--key is for keyed and broadcast state; this one is a list")
        for element in elements:
            yield _value_text(element)
        return
    for entry_key, value in elements:
        if key is None or key in _names(entry_key):
            yield f"{_value_text(entry_key)}: {_value_text(value)}"


class _Stamped:
    """A value with the time of its last access, as people read it."""

    def __init__(self, stamped: tuple[Any, int]) -> None:
        self._value, self._timestamp_ms = stamped

    def __repr__(self) -> str:
        return f"{_value_text(self._value)} (last access {format_timestamp(self._timestamp_ms)})"


def _value_text(value: Any) -> str:
    if isinstance(value, SerializedValue):
        return f"<{len(value.data):,} bytes by {value.serializer!r}>"
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_value_text(k)}: {_value_text(v)}" for k, v in value.items()) + "}"
    return _text(value)


def _names(key: Any) -> tuple[str, ...]:
    """Return what people may call a key."""
    try:
        return str(key), repr(key)
    except ValueError:
        return (_text(key),)


def _text(value: Any) -> str:
    """Return what Python shows of a value; it writes no integers of many thousand digits."""
    try:
        return repr(value)
    except ValueError:
        return f"<a value of {type(value).__name__} with more digits than Python writes>"


def _unstamped(kind: str, shape: Shape) -> Shape:
    """Return the shape of values without their stamps."""
    if isinstance(shape, str):
        return shape
    name, *parts = shape
    if name == "tuple":
        return parts[0] if kind not in (_LIST, _MAP) else shape
    if name == "list" and kind == _LIST:
        return ["list", _unstamped(_VALUE, parts[0])]
    if name == "dict" and kind == _MAP:
        return ["dict", parts[0], _unstamped(_VALUE, parts[1])]
    return [name, *(_unstamped(kind, part) for part in parts)]


_VALUE, _LIST, _MAP = (
    kind.value for kind in (StateDescriptor.Type.VALUE, StateDescriptor.Type.LIST, StateDescriptor.Type.MAP)
)


def _types(shapes: Iterable[Shape]) -> str:
    texts = list(dict.fromkeys(shape_text(shape) for shape in shapes))
    # Parts without an entry say nothing about types.
    return " | ".join([text for text in texts if text != "None"] or texts)


def _watermarks(parts: Sequence[OperatorPart]) -> str:
    least, greatest = min(p.watermark_ms for p in parts), max(p.watermark_ms for p in parts)
    text = f"watermark {format_timestamp(least)}"
    return text if least == greatest else f"{text} to {format_timestamp(greatest)}"


def _key_groups(part: OperatorPart) -> str:
    return (
        "no key groups" if part.key_group_range is None else "key groups {}-{}".format(*part.key_group_range)
    )


def _moment(timestamp_ms: int) -> str:
    if timestamp_ms in (MIN_TIMESTAMP, MAX_TIMESTAMP):
        return f"the {'end' if timestamp_ms == MAX_TIMESTAMP else 'beginning'} of time"
    return format_timestamp(timestamp_ms)


def _words(name: str) -> str:
    return {"EventTime": "event time", "ProcessingTime": "processing time"}.get(name, name.replace("_", " "))


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
