"""InternalTimerService against the traces of Flink's, firing by firing, with what it asks the clock for."""

from collections import defaultdict, deque
from typing import Any

from equipment.canonical import canonical
from equipment.recorders import Recorder
from equipment.traced_processing_time import TracedProcessingTimeService
from models.timers import string_key_group

from flinkcore.errors import DataError
from flinkcore.operators.keys.key_context import KeyContext
from flinkcore.operators.timers import (
    InternalTimer,
    InternalTimerService,
    InternalTimersSnapshot,
    InternalTimeServiceManager,
)

Range = tuple[int, int]


class PartRecorder(Recorder):
    """Entries of one part, written into those of the whole scenario."""

    def __init__(self, whole: Recorder, part: int) -> None:
        super().__init__()
        self.whole = whole
        self.part = part

    def add(self, kind: str, **fields: Any) -> None:
        self.whole.add(kind, part=self.part, **fields)


class Part:
    """One of the services of a scenario, with its own clock."""

    def __init__(self, scenario: "Scenario", part: int, key_groups: Range, now: int) -> None:
        self.scenario = scenario
        self.recorder = PartRecorder(scenario.recorder, part)
        self.key_context = KeyContext(scenario.max_parallelism, key_groups)
        self.clock = TracedProcessingTimeService(now, self.recorder)
        self.manager = InternalTimeServiceManager(self.key_context, self.clock)
        self.service: InternalTimerService

    def start(self) -> None:
        self.service = self.manager.get_internal_timer_service("timers", self)

    def on_event_time(self, timer: InternalTimer) -> None:
        self.fire("event", timer)

    def on_processing_time(self, timer: InternalTimer) -> None:
        self.fire("processing", timer)

    def fire(self, domain: str, timer: InternalTimer) -> None:
        self.recorder.add(
            "fire",
            domain=domain,
            key=timer.key,
            ns=timer.namespace,
            ts=timer.timestamp_ms,
            current_key=self.key_context.current_key,
            watermark=self.service.current_watermark(),
            now=self.clock.current_processing_time(),
        )
        callbacks = self.scenario.callbacks[domain, timer.key, timer.namespace, timer.timestamp_ms]
        for verb, namespace, timestamp in callbacks.popleft() if callbacks else ():
            self.change(verb, namespace, timestamp)

    def change(self, verb: str, namespace: str, timestamp: int) -> None:
        {
            "ret": self.service.register_event_time_timer,
            "det": self.service.delete_event_time_timer,
            "rpt": self.service.register_processing_time_timer,
            "dpt": self.service.delete_processing_time_timer,
        }[verb](namespace, timestamp)

    def apply(self, verb: str, *arguments: Any) -> None:
        service = self.service
        if verb == "wm":
            self.manager.advance_watermark(*arguments)
        elif verb == "pt":
            self.clock.advance_to(*arguments)
        elif verb == "num":
            self.recorder.add(
                "num", event=service.num_event_time_timers(), processing=service.num_processing_time_timers()
            )
        elif verb == "num_ns":
            (ns,) = arguments
            event, processing = service.num_event_time_timers(ns), service.num_processing_time_timers(ns)
            self.recorder.add("num_ns", ns=ns, event=event, processing=processing)
        elif verb == "foreach":
            timers: list[Any] = []
            key = self.key_context
            service.for_each_event_time_timer(
                lambda ns, ts: timers.append(["event", key.current_key, ns, ts])
            )
            service.for_each_processing_time_timer(
                lambda ns, ts: timers.append(["processing", key.current_key, ns, ts])
            )
            self.recorder.add("foreach", timers=timers)
        else:
            assert verb == "snapshot"
            self.recorder.add("snapshot", groups=named_groups(self.manager.snapshot()["timers"]))


def named_groups(snapshot: InternalTimersSnapshot) -> list[dict[str, Any]]:
    groups: dict[int, dict[str, Any]] = {}
    for domain, timers in (
        ("event", snapshot.event_time_timers),
        ("processing", snapshot.processing_time_timers),
    ):
        for timestamp, key, group, namespace in zip(*(column.tolist() for column in timers), strict=True):
            of_group = groups.setdefault(group, {"group": group, "event": [], "processing": []})
            of_group[domain].append((timestamp, snapshot.keys[key], snapshot.namespaces[namespace]))
    for of_group in groups.values():
        for domain in ("event", "processing"):
            of_group[domain] = [[key, ns, ts] for ts, key, ns in sorted(of_group[domain])]
    return [groups[group] for group in sorted(groups)]


class Scenario:
    def __init__(self, item: dict[str, Any]) -> None:
        self.recorder = Recorder()
        self.max_parallelism = item["max_parallelism"]
        self.callbacks: dict[tuple[Any, ...], deque[Any]] = defaultdict(deque)
        for callback in item["callbacks"]:
            timer = callback["domain"], callback["key"], callback["ns"], callback["ts"]
            self.callbacks[timer].append(callback["ops"])
        self.parts = [Part(self, 0, tuple(item["range"]), item["now"])]
        self.parts[0].start()

    def part_of(self, key: str) -> Part:
        if len(self.parts) == 1:
            return self.parts[0]
        group = string_key_group(key, self.max_parallelism)
        return next(
            part
            for part in self.parts
            if part.key_context.key_group_range[0] <= group <= part.key_context.key_group_range[1]
        )

    def rescale(self, ranges: list[Range]) -> None:
        """Hand every key group's timers to new services."""
        now = self.parts[0].clock.current_processing_time()
        snapshots = [
            part.manager.snapshot((group, group))
            for part in self.parts
            for first, last in (part.key_context.key_group_range,)
            for group in range(first, last + 1)
        ]
        self.parts = [Part(self, index, tuple(range_), now) for index, range_ in enumerate(ranges)]
        for part in self.parts:
            for snapshot in snapshots:
                part.manager.restore(snapshot)
            part.start()

    def apply(self, verb: str, *arguments: Any) -> None:
        if verb == "rescale":
            self.rescale(*arguments)
        elif verb in ("ret", "det", "rpt", "dpt"):
            key, *timer = arguments
            part = self.part_of(key)
            part.key_context.set_current_key(key)
            part.change(verb, *timer)
        else:
            for part in self.parts:
                part.apply(verb, *arguments)


def test_every_op_does_what_flinks_service_does(timer_service_scenario: dict[str, Any]) -> None:
    item = timer_service_scenario["input"]
    scenario = Scenario(item)
    for scenario.recorder.at, op in enumerate(item["ops"]):
        try:
            scenario.apply(*op)
        except DataError:
            scenario.recorder.add("error")
    expected = timer_service_scenario["output"]
    assert canonical("timer_service", item, {"entries": scenario.recorder.entries}) == canonical(
        "timer_service", item, expected
    )
