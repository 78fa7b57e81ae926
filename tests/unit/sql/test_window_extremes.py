"""Which joins of the results of windows with their extremes are ranks; their rows are compared in the golden traces."""

import json

import pytest
from jobs.sql_scenarios import GOLDEN

from flinkcore.sql.nodes.window_extremes import ExtremeJoin
from flinkcore.sql.plan.compiled_plan import CompiledPlan

PLANS = {
    case["name"].removeprefix("window_extremes-"): case["plan"]
    for case in map(json.loads, (GOLDEN / "window_extremes.jsonl").read_text().splitlines())
}
RANKS = {
    "at_least": ExtremeJoin(keys=(2, 3), value=1, is_highest=True, columns=(1, 2, 3)),
    "equal": ExtremeJoin(keys=(2, 3), value=1, is_highest=True, columns=(1, 2, 3)),
    "lowest": ExtremeJoin(keys=(2, 3), value=1, is_highest=False, columns=(1, 2, 3)),
    "by_key": ExtremeJoin(keys=(0, 3, 4), value=2, is_highest=True, columns=(0, 2, 3, 4)),
    "both_filtered": ExtremeJoin(keys=(2, 3), value=1, is_highest=True, columns=(1, 2, 3)),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_join_of_windows_with_their_own_extreme_is_a_rank_and_no_other_join_is(name: str) -> None:
    (join,) = (node for node in CompiledPlan.of(PLANS[name]).nodes if node.kind == "window-join")
    assert ExtremeJoin.of(join) == RANKS.get(name)
