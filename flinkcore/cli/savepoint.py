"""The command `flinkcore savepoint`, which looks into savepoints of Flink without Java."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flinkcore import savepoints
from flinkcore._internal.show.tables import shown_value
from flinkcore._internal.show.times import format_timestamp
from flinkcore.cli.output_directory import check_output_file
from flinkcore.cli.shown_state import add_options, check_options
from flinkcore.errors import ConfigurationError
from flinkcore.savepoints import Savepoint, SavepointOperator, SavepointState
from flinkcore.savepoints.differences import StateDifferences, differences
from flinkcore.savepoints.keyed_state import KeyedState, counts

_TIMERS = "_timer_state/"
_EXACT = "keep values that Arrow's usual types have no place for, as bytes and texts"


def add_commands(commands: Any) -> None:
    """Add the command to those of a parser."""
    savepoint = commands.add_parser("savepoint", help="look into a savepoint of Flink, without Java")
    actions = savepoint.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="print what a savepoint consists of, or the entries of a state")
    add_options(show, "savepoint", "only this operator: its uid or its id")
    show.add_argument("--no-counts", action="store_true", help="count no entries: read the headers alone")
    show.add_argument("--exact", action="store_true", help=_EXACT)
    show.set_defaults(call=show_savepoint)
    export = actions.add_parser("export", help="write the entries of a state into a Parquet file")
    export.add_argument("path", metavar="DIR", help="directory of the savepoint, or its URI")
    export.add_argument(
        "--operator", metavar="UID", help="uid or id of the operator, if several have the state"
    )
    export.add_argument("--state", metavar="NAME", required=True, help="name of the state")
    export.add_argument("--to", metavar="FILE", required=True, help="new Parquet file, or its URI")
    export.add_argument("--exact", action="store_true", help=_EXACT)
    export.set_defaults(call=export_state)
    diff = actions.add_parser(
        "diff",
        help="print how two savepoints differ",
        description="The exit status is 1 if they differ, and 2 after an error.",
    )
    diff.add_argument("first", metavar="DIR", help="directory of a savepoint, or its URI")
    diff.add_argument("second", metavar="DIR", help="directory of another one")
    diff.add_argument("--limit", type=int, default=3, help="name so many entries of each state at most")
    diff.add_argument("--exact", action="store_true", help=_EXACT)
    diff.set_defaults(call=diff_savepoints, status_of_errors=2)


def show_savepoint(arguments: argparse.Namespace) -> None:
    """Run `flinkcore savepoint show`.

    Raises
    ------
    SavepointError
        If there is no savepoint, or it is damaged or of an unsupported kind.
    ConfigurationError
        If there is no such operator or state, or several operators have the state.
    """
    check_options(arguments)
    savepoint = savepoints.open(arguments.path, exact=arguments.exact)
    if arguments.state is None:
        lines = _overview(savepoint, arguments.operator, not arguments.no_counts)
    else:
        state = _state(savepoint, arguments.operator, arguments.state)
        lines = _entries(state, arguments.key, arguments.limit)
    for line in lines:
        print(line)


def export_state(arguments: argparse.Namespace) -> None:
    """Run `flinkcore savepoint export`.

    Raises
    ------
    SavepointError
        If there is no savepoint, or it is damaged or of an unsupported kind.
    ConfigurationError
        If there is no such operator or state, several operators have the state, or the file exists.
    """
    from flinkcore._internal.io.stores import ENVIRONMENT

    check_output_file(arguments.to, "--to")
    state = _state(
        savepoints.open(arguments.path, exact=arguments.exact), arguments.operator, arguments.state
    )
    place = ENVIRONMENT.locate(arguments.to)
    n_rows = 0
    with pq.ParquetWriter(place.path, state.schema, filesystem=place.filesystem) as writer:
        try:
            for batch in state.batches():
                writer.write_batch(batch)
                n_rows += batch.num_rows
        except BaseException:
            writer.close()
            place.filesystem.delete_file(place.path)
            raise
    print(f"{_count(n_rows, 'row')} of state {state.name!r} in {arguments.to}")
    if state.undecodable:
        print(f"values of {state.undecodable} are bytes, as only Java can read them")


def diff_savepoints(arguments: argparse.Namespace) -> int:
    """Run `flinkcore savepoint diff`, and return 1 if the savepoints differ.

    Raises
    ------
    SavepointError
        If there is no savepoint, or it is damaged or of an unsupported kind.
    """
    first, second = (
        savepoints.open(path, exact=arguments.exact) for path in (arguments.first, arguments.second)
    )
    differ = False
    for found in differences(first, second, most_examples=arguments.limit):
        differ |= found.differ
        for line in _difference_lines(found):
            print(line)
    if not differ:
        print("the savepoints hold the same")
    return int(differ)


def _state(savepoint: Savepoint, uid: str | None, name: str) -> SavepointState:
    """Return the state of a name; timers may be named without their prefix."""
    operators = savepoint.operators if uid is None else [savepoint.operator(uid)]
    found = [
        (operator, each)
        for operator in operators
        for each in (name, f"{_TIMERS}{name}")
        if each in operator.states
    ]
    if not found and uid is not None:
        return operators[0].state(name)
    if not found:
        raise ConfigurationError(f"there is no state {name!r}; `flinkcore savepoint show DIR` lists all")
    if len(found) > 1:
        raise ConfigurationError(
            f"several operators have a state {name!r}: {[_name(operator) for operator, _ in found]}; choose one with "
            "--operator"
        )
    operator, name = found[0]
    return operator.states[name]


def _name(operator: SavepointOperator) -> str:
    return operator.uid or operator.operator_id


def _overview(savepoint: Savepoint, uid: str | None, has_counts: bool) -> Iterator[str]:
    operators = savepoint.operators if uid is None else [savepoint.operator(uid)]
    yield f"savepoint {savepoint.path}"
    yield (
        f"metadata version {savepoint.version}, checkpoint {savepoint.checkpoint_id}, "
        f"{_count(len(savepoint.operators), 'operator')}"
    )
    stateless = []
    for operator in operators:
        lines = list(_operator_lines(operator, has_counts))
        if not lines:
            stateless.append(repr(_name(operator)))
            continue
        metadata = operator.metadata
        names = [f"name {metadata.name!r}"] if metadata.name else []
        if metadata.uid:
            names.append(f"id {metadata.operator_id}")
        yield ""
        yield (
            f"operator {_name(operator)!r}: {', '.join([*names, f'parallelism {operator.parallelism}'])}, "
            f"{operator.max_parallelism:,} key groups"
        )
        yield from lines
    if stateless:
        yield ""
        yield f"without state: {', '.join(stateless)}"


def _operator_lines(operator: SavepointOperator, has_counts: bool) -> Iterator[str]:
    metadata = operator.metadata
    if metadata.is_finished:
        yield "  all subtasks have finished"
    yield from _state_lines(operator, has_counts)
    splits = operator.kafka_splits()
    for topic in dict.fromkeys(split.topic for split in splits):
        starts = ", ".join(f"{split.partition}: {split.start}" for split in splits if split.topic == topic)
        yield f"  topic {topic!r} of a KafkaSource, next offsets by partition: {starts}"
    if metadata.coordinator is not None and not splits:
        yield f"  state of the coordinator: {metadata.coordinator.size:,} bytes, which only Java can read"
    raw = sum(subtask.raw_states for subtask in metadata.subtasks)
    if raw:
        yield f"  {_count(raw, 'raw state')}, which only the operator can read"
    for reason in operator.unread:
        yield f"  not read: {reason}"


def _state_lines(operator: SavepointOperator, has_counts: bool) -> Iterator[str]:
    numbers: dict[str, int] = {}
    for name, state in operator.states.items():
        if has_counts and name not in numbers:
            numbers |= counts(state) if isinstance(state, KeyedState) else {name: state.count()}
        number = f", {_count(numbers[name], 'entry', 'entries')}" if has_counts else ""
        if state.kind == "TIMERS":
            yield f"  timers {name.removeprefix(_TIMERS)!r}: by {_types(state)}{number}"
            if numbers.get(name):
                yield f"    {_span(state)}"
        elif isinstance(state, KeyedState):
            ttl = ", with a time to live" if state.keyed_types.has_ttl else ""
            yield f"  {state.kind.lower()} state {name!r}: {_types(state)}{ttl}{number}"
        else:
            mode = state.kind.lower().replace("_", " ")
            yield f"  operator state {name!r} ({mode}): {_types(state)}{number}"
        if state.undecodable:
            yield f"    bytes, as only Java can read {state.undecodable}"


def _types(state: SavepointState) -> str:
    types = {name: each.name for name, each in state.types.items()}
    value, key, map_key = types.get("value"), types.get("key"), types.get("map_key")
    if not isinstance(state, KeyedState):
        return f"{key} to {value}" if key else f"{value}"
    if state.kind == "LIST":
        value = f"List<{value}>"
    of_map = f"{map_key} to " if map_key else ""
    namespace = "" if types["namespace"] == "void" else f", in {types['namespace']}"
    by = f"{of_map}{value} by {key}" if value else f"{key}"
    return f"{by}{namespace}"


def _span(state: SavepointState) -> str:
    least, greatest = None, None
    for batch in state.batches():
        ends = pc.min_max(batch["timestamp_ms"])
        low, high = ends["min"].as_py(), ends["max"].as_py()
        least = low if least is None else min(least, low)
        greatest = high if greatest is None else max(greatest, high)
    if least is None or greatest is None:
        return "none"
    if least == greatest:
        return f"at {format_timestamp(least)}"
    return f"from {format_timestamp(least)} to {format_timestamp(greatest)}"


def _entries(state: SavepointState, key: str | None, limit: int) -> Iterator[str]:
    if key is not None and "key" not in state.types:
        raise ConfigurationError("--key is for keyed and broadcast state; this one is a list")
    printed = more = 0
    for batch in state.batches():
        for i in _rows_of_key(batch, key):
            if printed < limit:
                yield _entry({name: batch[name][i] for name in batch.schema.names})
                printed += 1
            else:
                more += 1
    if more:
        yield f"… {more:,} more"


def _rows_of_key(batch: pa.RecordBatch, key: str | None) -> Iterable[int]:
    if key is None:
        return range(batch.num_rows)
    return (i for i, each in enumerate(batch["key"]) if key in (shown_value(each), str(each.as_py())))


def _entry(row: dict[str, pa.Scalar]) -> str:
    window = row.get("namespace")
    place = "" if window is None else f" in {shown_value(window)}"
    key = f"{shown_value(row['key'])}{place}" if "key" in row else ""
    if "timestamp_ms" in row:
        return f"{key}: {format_timestamp(row['timestamp_ms'].as_py())}"
    value = shown_value(row["value"])
    if "map_key" in row:
        value = f"{shown_value(row['map_key'])}: {value}"
    if "last_access_ms" in row:
        times = row["last_access_ms"].as_py()
        last = max(times) if isinstance(times, list) else times
        value += f" (last access {format_timestamp(last)})"
    return f"{key}: {value}" if key else value


def _difference_lines(found: StateDifferences) -> Iterator[str]:
    if not found.differ:
        return
    if found.state is None:
        yield f"operator {found.operator!r}: only in the {found.only_in} savepoint"
        return
    head = f"operator {found.operator!r}, state {found.state.removeprefix(_TIMERS)!r}"
    if found.only_in is not None:
        yield f"{head}: only in the {found.only_in} savepoint"
        return
    if found.incomparable is not None:
        yield f"{head}: not compared, as {found.incomparable}"
        return
    yield (
        f"{head}: {found.n_equal:,} equal, {found.n_changed:,} changed, {found.n_only_in_first:,} only in the first, "
        f"{found.n_only_in_second:,} only in the second"
    )
    for name, one, two in found.examples:
        values = " instead of ".join(each for each in (two, one) if each)
        side = (
            ""
            if one is not None and two is not None
            else f" only in the {'first' if two is None else 'second'}"
        )
        yield f"  {name or 'an element'}{side}{': ' if values else ''}{values}"


def _count(number: int, singular: str, plural: str | None = None) -> str:
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
