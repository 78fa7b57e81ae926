"""Details that ``EXPLAIN`` shows beside the operators of a plan."""

from enum import Enum


class ExplainDetail(Enum):
    """Details of an explained plan.

    Notes
    -----
    Follows ``pyflink.table.ExplainDetail``. ``JSON_EXECUTION_PLAN`` shows the operators that Flink would run.
    """

    ESTIMATED_COST = 0
    CHANGELOG_MODE = 1
    JSON_EXECUTION_PLAN = 2
    PLAN_ADVICE = 3
