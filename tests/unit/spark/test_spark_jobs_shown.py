"""How the jobs of a replay are described and grouped for Spark."""

from typing import Any

import pytest

pytest.importorskip("pyspark")

from flinkcore.errors import LifecycleError
from flinkcore.spark.sessions.spark_jobs import DESCRIPTION, GROUP, SparkJobs


class Context:
    """Keeps local properties, and takes note of what is cancelled."""

    _jsc = object()

    def __init__(self, **properties: str) -> None:
        self.properties: dict[str, str | None] = {DESCRIPTION: None, GROUP: None, **properties}
        self.cancelled: list[str] = []

    def getLocalProperty(self, name: str) -> str | None:
        return self.properties[name]

    def setLocalProperty(self, name: str, value: str | None) -> None:
        self.properties[name] = value

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.append(group)


class Session:
    _jsparkSession = object()

    def __init__(self, context: Any) -> None:
        self.sparkContext = context


def test_what_the_user_has_set_stays_in_front_and_comes_back() -> None:
    of_user = {DESCRIPTION: "mine", GROUP: "my group"}
    context = Context(**of_user)
    with SparkJobs(Session(context)).described("pass 2"):
        assert context.properties == {DESCRIPTION: "mine: flinkcore: pass 2", GROUP: "my group"}
        with SparkJobs(Session(context)).described("preflight"):
            assert context.properties == {DESCRIPTION: "mine: flinkcore: preflight", GROUP: "my group"}
    assert context.properties == of_user


def test_all_jobs_of_a_replay_have_one_group_and_another_replay_has_another() -> None:
    context, groups = Context(), []
    for _ in range(2):
        jobs = SparkJobs(Session(context))
        for description in ("pass 1", "pass 2"):
            with jobs.described(description):
                assert context.properties[DESCRIPTION] == f"flinkcore: {description}"
                groups.append(context.properties[GROUP])
    assert groups[0] == groups[1] != groups[2] == groups[3]
    assert context.properties == {DESCRIPTION: None, GROUP: None}


@pytest.mark.parametrize("group", [None, "my group"])
def test_an_interrupt_of_the_driver_cancels_the_jobs_of_the_replay_alone(group: str | None) -> None:
    context = Context(**({} if group is None else {GROUP: group}))

    def interrupt() -> None:
        with SparkJobs(Session(context)).described("pass 2"):
            groups.append(context.properties[GROUP])
            raise KeyboardInterrupt

    groups: list[str | None] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert context.cancelled == groups
    assert context.properties == {DESCRIPTION: None, GROUP: group}


def test_a_session_that_gives_nobody_its_context_runs_jobs_without_a_description() -> None:
    class Refused:
        _jsc = object()

        def __getattr__(self, name: str) -> Any:
            raise PermissionError(f"{name} is not for everybody")

    class WithoutContext:
        _jsparkSession = object()

        @property
        def sparkContext(self) -> Any:
            raise PermissionError("not for everybody")

    for session in (Session(Refused()), WithoutContext()):
        jobs, ran = SparkJobs(session), []
        with jobs.described("pass 1"):
            ran.append(1)
        jobs.show_counts({"events": 3})
        assert ran == [1]


def test_a_session_that_has_been_stopped_is_refused() -> None:
    context = Context()
    context._jsc = None  # type: ignore[assignment]
    with pytest.raises(LifecycleError, match="has been stopped"), SparkJobs(Session(context)).described("x"):
        raise AssertionError
