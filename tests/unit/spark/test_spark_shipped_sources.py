"""Collections on their way to Spark's workers: what they share, and which element cannot go."""

import pickle
import sys
import threading
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.common import ExecutionConfig, TimestampAssigner, WatermarkStrategy
from flinkcore.common.configuration import Configuration
from flinkcore.datastream.connectors.collection import CollectionSplit
from flinkcore.elements.arrivals.task_sources import TaskElements, TaskSplits
from flinkcore.errors import UserCodeError
from flinkcore.spark.elements.shipped_sources import ShippedSources


def shipped(elements: list[Any], strategy: WatermarkStrategy | None = None) -> ShippedSources:
    split, settings = CollectionSplit("collection", elements), ExecutionConfig(Configuration())
    if strategy is None:
        return ShippedSources.of({4: TaskElements(0, split, None, settings, 0)})
    return ShippedSources.of({4: TaskSplits(0, (split,), 1, None, True, None, strategy, settings, 0)})


def read(sources: ShippedSources) -> list[Any]:
    return list(pickle.loads(sources.pickled[4]).split.elements())


class Unreadable:
    """Can be pickled, and not unpickled."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __setstate__(self, state: Any) -> None:
        if state["number"] == 2:
            raise ValueError("no 2")
        self.number = state["number"]


def test_elements_come_as_they_are_and_share_what_they_shared() -> None:
    held: list[int] = []
    first, second, third = read(shipped([held, (held, "a"), None]))
    assert (first, second, third) == ([], ([], "a"), None)
    assert second[0] is first
    assert read(shipped([])) == []


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (threading.Lock(), r"<unlocked _thread.lock object at \w+>"),
        ((each for each in ()), "<generator object .*>"),
        (["x" * 500, threading.Lock()], r"\['x{198}\.\.\. \(\d+ characters\)"),
    ],
)
def test_an_element_that_cannot_be_pickled_is_named(element: Any, text: str) -> None:
    with pytest.raises(
        UserCodeError,
        match=f"^element 2 of the collection, {text}, cannot be sent to Spark's workers: TypeError: cannot pickle "
        ".* Let elements be values that pickle can write",
    ):
        shipped([1, 2, element, 3])


def test_an_element_that_cannot_be_unpickled_is_named_by_its_worker_and_shown_by_the_driver() -> None:
    sources = shipped([Unreadable(1), Unreadable(2)])
    with (
        pytest.raises(
            UserCodeError,
            match=r"^element 1 of the collection, <.*Unreadable object at \w+>, cannot be unpickled on a Spark worker: "
            "ValueError: no 2",
        ),
        sources.shows_unread_elements(),
    ):
        read(sources)  # fmt: skip


def test_an_element_of_a_module_that_workers_do_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    only_here = ModuleType("only_here")
    only_here.Unreadable = type("Unreadable", (), {"__module__": "only_here"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "only_here", only_here)
    sources = shipped([1, only_here.Unreadable()])
    monkeypatch.delitem(sys.modules, "only_here")
    with (
        pytest.raises(
            UserCodeError,
            match=r"element 1 of .*<only_here\.Unreadable.*No module named 'only_here'.*addArtifact",
        ),
        sources.shows_unread_elements(),
    ):
        read(sources)


def test_other_errors_pass_as_they_are() -> None:
    sources = shipped([1])
    with pytest.raises(UserCodeError, match=r"^of a map$"), sources.shows_unread_elements():
        raise UserCodeError("of a map")


class Locked(TimestampAssigner):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return 0


def test_a_watermark_strategy_that_cannot_be_pickled_is_told_from_elements() -> None:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Locked())
    with pytest.raises(UserCodeError, match=r"or its watermark strategy, cannot be sent.*_thread\.lock"):
        shipped([1], strategy)
