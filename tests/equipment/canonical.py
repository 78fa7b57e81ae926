"""The canonical form of golden traces: what two implementations must agree on.

Flink leaves two orders open: that of timers with equal timestamps, and so which firing of a key they are, and that of
the elements of merged sessions. Errors are compared by their presence.
"""

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

Entry = dict[str, Any]


def without_error_text(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    if entry.get("type") == "error":
        return {"at": entry["at"], "type": "error"}
    if "error" in entry or {"class", "message"} <= entry.keys():
        return {"error": True}
    return entry


def _equal_timers(kind: str, entry: Entry) -> tuple[Any, ...] | None:
    if kind == "timer_service":
        return (entry["at"], entry["part"], entry["domain"], entry["ts"]) if entry["type"] == "fire" else None
    return (entry["at"], *entry["timer"][:2]) if "timer" in entry else None


def _order_among_equal_timers(kind: str, entry: Entry) -> tuple[Any, ...]:
    if _equal_timers(kind, entry) is None:
        return ()
    if kind == "timer_service":
        return entry["key"], entry["ns"]
    key, start = entry["timer"][2:]
    return key, start is not None, start or 0


def canonical_values(kind: str, item: dict[str, Any], entries: list[Entry]) -> list[Entry]:
    """Entries as they are compared, in the order that they have."""
    copies: list[Entry] = json.loads(json.dumps(entries))
    session = kind == "window" and "session" in item["assigner"]["type"]
    for entry in copies:
        if entry["type"] == "foreach":
            entry["timers"].sort(key=json.dumps)
        if session and isinstance(entry.get("value"), dict):
            entry["value"]["elements"].sort(key=json.dumps)
    return [without_error_text(entry) for entry in copies]


def canonical_entries(kind: str, item: dict[str, Any], entries: list[Entry]) -> list[Entry]:
    """Entries as they are compared, those of equal timers in the order of their keys."""
    ordered = []
    for run in runs_of_equal_timers(kind, canonical_values(kind, item, entries)):
        run.sort(key=lambda entry: _order_among_equal_timers(kind, entry))
        number_firings_in_order(run)
        ordered += run
    return ordered


def number_firings_in_order(run: list[Entry]) -> None:
    """Give the firings of each key, which equal timers caused, their numbers in the order of the windows."""
    fired: dict[str, list[Entry]] = {}
    for entry in run:
        value = entry.get("value")
        if isinstance(value, dict) and "global_firings" in value:
            fired.setdefault(json.dumps(value["key"]), []).append(value)
    for values in fired.values():
        values.sort(key=lambda value: (value["start"] is not None, value["start"] or 0))
        numbers = sorted(value["global_firings"] for value in values)
        for value, number in zip(values, numbers, strict=True):
            value["global_firings"] = number


def runs_of_equal_timers(kind: str, entries: list[Entry]) -> Iterator[list[Entry]]:
    """Entries in runs of one each, but for those of equal timers, whose order is open."""

    def cause(numbered: tuple[int, Entry]) -> tuple[Any, ...]:
        number, entry = numbered
        return _equal_timers(kind, entry) or (number,)

    for _, run in groupby(enumerate(entries), key=cause):
        yield [entry for _, entry in run]


def without_times_of_timers(wanted: list[Entry], found: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Entries of windows, wanted and found, without what results do not tell: when before its end one fired."""
    ordered: list[Entry] = []
    for run in runs_of_equal_timers("window", wanted):
        here = found[len(ordered) : len(ordered) + len(run)]
        ordered += sorted(here, key=lambda entry: _order_among_equal_timers("window", entry))
    ordered += found[len(ordered) :]

    def untimed(entry: Entry) -> Entry:
        if "timer" not in entry:
            return entry
        domain, _, key, start = entry["timer"]
        return {**entry, "timer": [domain, key, start]}

    return [*map(untimed, wanted)], [*map(untimed, ordered)]


def canonical_queue_results(item: dict[str, Any], results: list[Any]) -> list[Any]:
    """Results of `timer_queue` operations; polls of one timestamp are compared as a multiset where ties exist."""
    results = [without_error_text(result) for result in results]
    if not item["ties"]:
        return results
    compared = []
    for (operation, *_), result in zip(item["ops"], results, strict=True):
        if operation == "remove":
            result = None
        elif operation == "peek" and isinstance(result, list):
            result = result[0]
        compared.append((operation, result))
    ordered: list[Any] = []
    for (operation, _), group in groupby(
        compared, key=lambda pair: (pair[0], pair[1][0] if pair[0] == "poll" and pair[1] else None)
    ):
        run = list(group)
        ordered += sorted(run, key=json.dumps) if operation == "poll" else run
    return ordered


def canonical(kind: str, item: dict[str, Any], output: dict[str, Any]) -> Any:
    """Output of a golden scenario, or of an implementation, in the form that is compared."""
    if kind == "timer_queue":
        return canonical_queue_results(item, output["results"])
    if kind == "key_groups":
        return {
            name: [without_error_text(x) for x in value]
            if isinstance(value, list)
            else without_error_text(value)
            for name, value in output.items()
        }
    return {**output, "entries": canonical_entries(kind, item, output["entries"])}
