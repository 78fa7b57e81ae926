"""Late events correct what was already given: hourly counts in a Delta table, right again after each report.

Reports of flights come hours late, as orders of a shop do. Each hour is emitted when the watermark has passed it; a
late report withdraws the hour and emits it again (`retracting()`). The changes go to the table in the order in which
the live job gave them, so that each version of the table is what a dashboard showed at that time. Run it with
``python -m flinkcore.examples.corrected_hours [DIRECTORY]``; it needs ``flinkcore[delta]``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.common import Time
from flinkcore.datastream import LogStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count, mean
from flinkcore.examples.flights import flights_by_origin

KEYS = ("origin", "window_start")
"""Columns that name an hour of an airport."""

SHOWN_AT = (datetime(2001, 1, 2, 18), datetime(2001, 1, 3), datetime(2001, 1, 3, 18))
"""Times at which somebody looked at the dashboard."""


def hourly_changes(environment: StreamExecutionEnvironment) -> LogStream:
    """Return the hours of each airport as changes: ``+I`` a first result, ``-U`` one withdrawn, ``+U`` the new one."""
    return (
        flights_by_origin(environment)
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .allowed_lateness(Time.hours(6))
        .retracting()
        .aggregate(flights=count(), delay=mean("delay"))
        .with_emitted_at()
    )


def by_time(changes: pa.Table, times: tuple[datetime, ...]) -> Iterator[pa.Table]:
    """Yield the changes up to each time, without those up to the one before; then all that the end of the log gave."""
    emitted = changes["emitted_at"]
    before = pc.less(emitted, pa.scalar(datetime.min.replace(year=1900), emitted.type))
    for time in times:
        known = pc.fill_null(pc.less_equal(emitted, pa.scalar(time, emitted.type)), False)
        yield changes.filter(pc.and_not(known, pc.fill_null(before, False)))
        before = known
    yield changes.filter(pc.invert(before))


def apply(table: str, changes: pa.Table) -> None:
    """Bring a Delta table of hours up to date: of each hour the last change that is not a withdrawal counts.

    A table of sums over hours would add up all changes, and ``-U`` takes away what was added before.
    """
    from deltalake import DeltaTable, write_deltalake

    given = changes.filter(pc.starts_with(changes["row_kind"], "+"))
    rest = [name for name in given.column_names if name not in KEYS]
    last = given.group_by(list(KEYS), use_threads=False).aggregate([(name, "last") for name in rest])
    hours = last.rename_columns([*KEYS, *rest]).drop_columns(["row_kind", "watermark"])
    if not DeltaTable.is_deltatable(table):
        write_deltalake(table, hours)
        return
    same = " AND ".join(f"old.{key} = new.{key}" for key in KEYS)
    merge = DeltaTable(table).merge(hours, same, source_alias="new", target_alias="old")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def main() -> None:
    """Replay the log in this process, write the table, and print one day as its versions show it."""
    from deltalake import DeltaTable

    with tempfile.TemporaryDirectory() as temporary:
        table = str(Path(sys.argv[1] if len(sys.argv) > 1 else temporary) / "hours")
        if DeltaTable.is_deltatable(table):
            sys.exit(f"{table} is there already: name another directory")
        environment = StreamExecutionEnvironment.get_execution_environment()
        changes = hourly_changes(environment).execute().to_arrow()
        kinds = {row["values"]: row["counts"] for row in changes["row_kind"].value_counts().to_pylist()}
        print("changes:", ", ".join(f"{kinds[kind]:,} {kind}" for kind in ("+I", "-U", "+U")))
        withdrawn = pc.equal(changes["row_kind"], "-U")
        total = pc.sum(pc.if_else(withdrawn, pc.negate(changes["flights"]), changes["flights"]))
        print(f"added up, and what is withdrawn taken away again: {total.as_py():,} flights")
        for part in by_time(changes, SHOWN_AT):
            apply(table, part)
        print("\nAtlanta on 2 January, as the table showed it")
        for version, shown_at in enumerate([*SHOWN_AT, None]):
            hours = DeltaTable(table, version=version).to_pyarrow_table()
            day = pa.array([datetime(2001, 1, 2), datetime(2001, 1, 3)], hours["window_start"].type)
            within = pc.and_(
                pc.greater_equal(hours["window_start"], day[0]), pc.less(hours["window_start"], day[1])
            )
            atlanta = hours.filter(pc.and_(within, pc.equal(hours["origin"], "ATL")))
            corrected = pc.sum(atlanta["late_firing"].cast("int64")).as_py() or 0
            at = "at the end      " if shown_at is None else f"{shown_at:%Y-%m-%d %H:%M}"
            print(
                f"{at}  version {version}: {pc.sum(atlanta['flights']).as_py():4} flights "
                f"in {atlanta.num_rows:2} hours, {corrected} of them corrected"
            )


if __name__ == "__main__":
    main()
