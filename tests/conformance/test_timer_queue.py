"""TimerHeap does what Flink's HeapPriorityQueueSet did, op by op."""

from typing import Any

from equipment.canonical import canonical
from models.timers import string_key_group

from flinkcore._native.timers import Timer, TimerColumns, TimerHeap
from flinkcore.errors import DataError


class NamedTimers:
    """A TimerHeap whose keys and namespaces are strings, as in the scenarios."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.max_parallelism = scenario["max_parallelism"]
        self.timers = TimerHeap(self.max_parallelism, tuple(scenario["range"]))
        self.names: list[str] = []

    def id_of(self, name: str) -> int:
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def named(self, timer: Timer | None) -> list[Any] | None:
        if timer is None:
            return None
        return [timer.timestamp_ms, self.names[timer.key], self.names[timer.namespace]]

    def sorted(self, columns: TimerColumns) -> list[Any]:
        return sorted(
            [ts, self.names[key], self.names[namespace]]
            for ts, key, namespace in zip(
                columns.timestamps_ms, columns.keys, columns.namespaces, strict=True
            )
        )

    def apply(self, op: str, *arguments: Any) -> Any:
        if op in ("add", "remove"):
            ts, key, namespace = arguments
            key_group = string_key_group(key, self.max_parallelism)
            return getattr(self.timers, op)(ts, self.id_of(key), key_group, self.id_of(namespace))
        if op in ("poll", "peek"):
            return self.named(getattr(self.timers, op)())
        if op == "subset":
            return self.sorted(self.timers.subset_for_key_group(*arguments))
        if op == "iterate":
            return sorted(self.named(timer) for timer in self.timers)
        return {"size": self.timers.size, "empty": self.timers.is_empty, "clear": self.timers.clear}[op]()


def test_every_result_is_that_of_flinks_queue(timer_queue_scenario: dict[str, Any]) -> None:
    scenario = timer_queue_scenario["input"]
    queue = NamedTimers(scenario)
    results = []
    for op in scenario["ops"]:
        try:
            results.append(queue.apply(*op))
        except DataError as error:
            results.append({"error": {"class": "DataError", "message": str(error)}})
        queue.timers._check()
    mine = canonical("timer_queue", scenario, {"results": results})
    assert mine == canonical("timer_queue", scenario, timer_queue_scenario["output"])
