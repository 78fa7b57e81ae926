"""Makes scenarios of source contexts that a job can run from recorded ones, and shortens what was recorded.

``scenarios.py steps`` lets the clock start at 0 and move by single milliseconds. ``scenarios.py shorten`` leaves
out the milliseconds in which nothing happened, and the scenarios in which an emission meets a timer of its
millisecond, since the order of these two is that of the oracle's clock.
"""

import json
import sys
from typing import Any

Scenario = dict[str, Any]


def with_steps(scenario: Scenario) -> Scenario:
    given = scenario["input"]
    now, at = given["now"], 1
    events: list[list[Any]] = [["pt", 1]]
    for event in given["events"]:
        if event[0] != "pt":
            events.append(event)
            continue
        until = event[1] - now + 1
        events += [["pt", time] for time in range(at + 1, until + 1)]
        at = max(at, until)
    kept = {key: scenario[key] for key in ("kind", "name", "flink")}
    return kept | {"input": given | {"now": 0, "events": events}}


def shortened(scenario: Scenario) -> Scenario | None:
    events, entries = scenario["input"]["events"], scenario["output"]["entries"]
    fired = {entry["at"] for entry in entries if entry.get("op") == "fire"}
    if any(at in fired and after[0] != "pt" for at, after in enumerate(events[1:])):
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
