"""Makes scenarios of source contexts that a job can run from recorded ones, and shortens what was recorded.

``scenarios.py steps`` lets the clock start at 0 and move by single milliseconds. ``scenarios.py shorten`` leaves
out the milliseconds in which nothing happened, and the scenarios in which an emission meets a timer of its
millisecond, since the order of these two is that of the oracle's clock.
"""

import json
import sys
from itertools import dropwhile, takewhile
from typing import Any

Scenario = dict[str, Any]
END_OF_JOB = [["w", 2**63 - 1], ["finish"]]


def with_steps(scenario: Scenario) -> Scenario | None:
    given = scenario["input"]
    now, at = given["now"], 1
    events: list[list[Any]] = [["pt", 1]]
    emitted = given["events"]
    if scenario["kind"] == "timestamps_operator":
        # The operator ignores statuses.
        emitted = [
            event for event in takewhile(lambda event: event[0] != "finish", emitted) if event[0] != "s"
        ]
        times = [event[1] for event in emitted if event[0] == "r"]
        if None in dropwhile(lambda time: time is None, times):
            return None  # an element without a timestamp takes the one before, if it comes from a source function
    for event in emitted:
        if event[0] != "pt":
            events.append(event)
            continue
        until = event[1] - now + 1
        events += [["pt", time] for time in range(at + 1, until + 1)]
        at = max(at, until)
    if scenario["kind"] == "timestamps_operator":
        events += END_OF_JOB
    kept = {key: scenario[key] for key in ("kind", "name", "flink")}
    return kept | {"input": given | {"now": 0, "events": events}}


def shortened(scenario: Scenario) -> Scenario | None:
    events, entries = scenario["input"]["events"], scenario["output"]["entries"]
    fired = {entry["at"] for entry in entries if entry.get("op") == "fire"}
    emitted = events[: -len(END_OF_JOB)] if events[-len(END_OF_JOB) :] == END_OF_JOB else events
    if any(at in fired and after[0] != "pt" for at, after in enumerate(emitted[1:])):
        return None
    busy = {entry["at"] for entry in entries}
    last = len(events) - 1
    kept = [
        at
        for at, event in enumerate(events)
        if event[0] != "pt" or at in busy or at == last or events[at + 1][0] != "pt"
    ]
    number = {-1: -1} | {at: index for index, at in enumerate(kept)}
    return scenario | {
        "input": scenario["input"] | {"events": [events[at] for at in kept]},
        "output": {"entries": [entry | {"at": number[entry["at"]]} for entry in entries]},
    }


if __name__ == "__main__":
    change = {"steps": with_steps, "shorten": shortened}[sys.argv[1]]
    for line in sys.stdin:
        changed = change(json.loads(line))
        if changed is not None:
            print(json.dumps(changed, separators=(",", ":")))
