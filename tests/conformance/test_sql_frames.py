"""OVER and GROUP BY against the rows that Flink SQL has for compiled plans, at the steps at which it has them."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from conformance.conftest import GOLDEN, scenarios
from jobs.sql_frames import Change, Plan

import flinkcore as fc

SQL = GOLDEN / "sql"

NOT_RUN = {
    "$$WELFORD_M2$1$1": 1,  # of decimals, which are rounded on the way
    "$COLLECT$1": 1,
    "expand": 5,  # grouping sets are a union
    "no aggregates: deduplicate": 2,
    "$LISTAGG$1": 1,
    "max_by of rows that are withdrawn": 5,
    "min_by of rows that are withdrawn": 2,
}
"""What plans have that these operators do not, and in how many scenarios."""


def all_of(kind: str) -> list[Any]:
    found = [each for each in scenarios(SQL, kind) if Plan(each).missing() is None]
    return [pytest.param(each, id=each["name"]) for each in found]


def run(scenario: dict[str, Any], parallelism: int = 1) -> list[Change]:
    def environment() -> fc.StreamExecutionEnvironment:
        return fc.StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)

    def taken(stream: Any) -> pa.Table:
        return stream.execute().to_arrow()

    return Plan(scenario).run(environment=environment, given=lambda table: table, taken=taken)


@pytest.mark.parametrize("scenario", all_of("over"))
@pytest.mark.parametrize("parallelism", [1, 3])
def test_over_has_the_rows_of_flink_sql(scenario: dict[str, Any], parallelism: int) -> None:
    found, expected = run(scenario, parallelism), Plan(scenario).recorded()
    # The order of keys within a step is open in Flink.
    assert in_steps(found) == in_steps(expected)


@pytest.mark.parametrize("scenario", all_of("group_by"))
def test_aggregates_of_keys_change_as_in_flink_sql(scenario: dict[str, Any]) -> None:
    assert run(scenario) == Plan(scenario).recorded()


def test_scenarios_that_are_not_run_are_those_that_are_known() -> None:
    plans = [Plan(each) for kind in ("over", "group_by") for each in scenarios(SQL, kind)]
    assert Counter(missing for plan in plans if (missing := plan.missing()) is not None) == NOT_RUN


def in_steps(changes: list[Change]) -> list[tuple[int, str, str]]:
    return sorted((each.at, each.kind, repr(each.values)) for each in changes)
