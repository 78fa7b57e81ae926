"""The suspicion that a log is not in the order of its arrivals, or has unnamed splits: told, never acted on."""

from flinkcore.common.split_origin import FILE
from flinkcore.replay.plans.replay_plan import ReplayPlan
from flinkcore.replay.time_plane.timeline import SplitTimes

_USUAL_PERCENT = 1
"""Some events go back in most logs, as writers of several threads make them."""


def arrival_order_warnings(plan: ReplayPlan, splits: SplitTimes) -> list[str]:
    """Return what to warn of if many events were recorded before one that precedes them in their split.

    Parameters
    ----------
    plan : ReplayPlan
        The job.
    splits : SplitTimes
        How many events each split has, and how many of them went back.

    Returns
    -------
    list of str
        Empty if no more than 1 % of the events are known to.
    """
    events, raised = int(splits.events.sum()), int(splits.raised.sum())
    if 100 * raised <= _USUAL_PERCENT * events:
        return []
    split = plan.log.split
    advice = "sort the log by arrival"
    if split is None:
        advice += ", or name split= (--split; --split-per-file if each file is in order)"
    else:
        within = "file" if split is FILE else f"{split!r}"
        advice += (
            f" within each {within}, or name another split= if that is not what wrote the events in order"
        )
    return [
        f"arrivals go back: more than {_USUAL_PERCENT} % of the {events:,} events were recorded to arrive before one "
        "that precedes them in their split. They count as arriving with it (the running maximum), so that many "
        f"may be late: {advice}"
    ]
