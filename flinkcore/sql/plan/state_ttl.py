"""Times to live of the state of a plan's nodes: ``table.exec.state.ttl``, and ``STATE_TTL`` hints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flinkcore.common.config_options import ConfigOption
from flinkcore.common.settings.setting_types import DURATION
from flinkcore.common.time import Duration
from flinkcore.sql.plan.compiled_plan import PlanNode
from flinkcore.sql.plan.settings import duration_ms

STATE_TTL: Final = ConfigOption[Duration]("table.exec.state.ttl", DURATION)

_OF_SETTINGS: Final = frozenset(("over-aggregate", "temporal-join"))
"""Nodes whose time to live is not in plans: Flink reads the setting when it runs them."""


def ttls_of(node: PlanNode, settings: Mapping[str, str]) -> tuple[int, ...]:
    """Return the times to live of a node's states, in ms of processing time after they were written; 0 for none.

    Parameters
    ----------
    node : PlanNode
    settings : mapping of str to str
        Settings that are not in the plan.

    Returns
    -------
    tuple of int
        One for each state that the plan names, or one for a node whose time to live is a setting.
    """
    written = [each.get("ttl", "0 ms") for each in node.json.get("state") or ()]
    if not written and node.kind in _OF_SETTINGS:
        written = [settings.get(STATE_TTL.key(), "0 ms")]
    return tuple(duration_ms(STATE_TTL, {STATE_TTL.key(): ttl}) for ttl in written)
