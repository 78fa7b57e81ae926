"""Timers and state of a checkpoint in windows that the operator does not have are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from equipment.forged_checkpoints import forge, forge_table, with_column
from jobs.checkpoint_trials import run_job

from flinkcore.errors import CheckpointError


def namespaces(change: Callable[[Any], Any]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
        column = batch.column("namespace")
        values = [change(value) for value in column.dictionary.to_pylist()]
        array = pa.DictionaryArray.from_arrays(column.indices, pa.array(values, column.type.value_type))
        return with_column(batch, "namespace", array)

    return changed


@pytest.mark.parametrize(
    ("job", "change"),
    [
        ("co_group", namespaces(lambda window: window | {"start": window["start"] + 1})),
        ("co_group", namespaces(lambda window: {"start": window["end"], "end": window["start"]})),
        ("windows_of_functions_in_a_row", namespaces(lambda window: window | {"end": window["end"] + 20})),
        (
            "windows_of_functions_in_a_row",
            namespaces(lambda window: {"start": -(2**63), "end": -(2**63) + 20}),
        ),
        ("interval_join", namespaces(lambda side: f"{side}?")),
    ],
)
def test_timers_of_windows_that_the_assigner_does_not_make_are_refused(
    tmp_path: Path, job: str, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> None:
    run_job(job, 0, stop_with_checkpoint=tmp_path)
    forge_table(tmp_path, "timers", change)
    with pytest.raises(
        CheckpointError, match=r"the timers '.*' of the checkpoint are of .*, which the operator does"
    ):
        run_job(job, 1, restore_from=tmp_path)


def test_timers_of_another_service_are_refused(tmp_path: Path) -> None:
    run_job("function_alone", 0, stop_with_checkpoint=tmp_path)

    def rename(content: dict[str, Any]) -> None:
        for table in (table for part in content["parts"] for table in part["tables"]):
            if table["kind"] == "timers":
                table["name"] = "window-timers"

    forge(tmp_path, rename)
    with pytest.raises(CheckpointError, match="the timers 'window-timers' are not those of the operator"):
        run_job("function_alone", 1, restore_from=tmp_path)


def test_state_of_a_window_in_a_function_without_windows_is_refused(tmp_path: Path) -> None:
    run_job("function_alone", 0, stop_with_checkpoint=tmp_path)

    def count_windows(batch: pa.RecordBatch) -> pa.RecordBatch:
        return with_column(batch, "namespace", pa.array(range(batch.num_rows), pa.int64()))

    forge_table(tmp_path, "keyed_state", count_windows)

    def shape(content: dict[str, Any]) -> None:
        tables = [
            table for part in content["parts"] for table in part["tables"] if table["kind"] == "keyed_state"
        ]
        tables[0]["shapes"]["namespace"] = "count_window"

    forge(tmp_path, shape)
    with pytest.raises(CheckpointError, match=r"the state '.*' of the checkpoint are of CountWindow"):
        run_job("function_alone", 1, restore_from=tmp_path)


@pytest.mark.parametrize("job", ["broadcast_without_keys", "broadcast_to_keys"])
def test_broadcast_state_is_there(tmp_path: Path, job: str) -> None:
    run_job(job, 0, stop_with_checkpoint=tmp_path)

    def leave_out(content: dict[str, Any]) -> None:
        for part in content["parts"]:
            part["tables"] = [table for table in part["tables"] if table["kind"] != "operator_state"]

    forge(tmp_path, leave_out)
    with pytest.raises(CheckpointError, match=r"lacks its operator state|is not listed"):
        run_job(job, 1, restore_from=tmp_path)
