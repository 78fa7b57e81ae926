"""Random jobs over random logs give the same rows, in the same order per key, however they are run.

An example is a `Scenario`: one or two logs (`fuzz.logs`), a watermark strategy for each
(`fuzz.watermark_strategies`), a job (`fuzz.drawn_jobs`), and some ways to run it (`fuzz.runs`).

- **Logs**: one to three key columns of every type that can be a key, in the layouts of Arrow; values null, NaN, at
  the ends of their range; up to three splits of any type, some idle, empty or of one row; arrivals with ties, and
  some that go back; event times at both ends of int64, negative, null by policy.
- **Strategies**: all built in, and generators of a user's that go back, stand still, idle, or emit the maximum amid
  the log; idleness, alignment.
- **Jobs**: windows of all kinds with triggers, evictors, lateness and output modes, over columns and by functions of
  every sort; process functions that do what the rows tell them with all kinds of state and timers, also over batches;
  joins, connected, broadcast and united logs; operators in a row, also those of `jobs.resumed_jobs`; programs over
  Python objects from `jobs.element_steps`. Half of them say when their results were emitted.
- **Ways**: embedded, or Spark's tasks and exchange in this process (`fuzz.local_spark`), with a budget also a real
  session, in several time zones; parallelism and batch sizes; from a table, a DataFrame, or files of each format, which
  tell splits by a column, by folders, or by being one; with rows in order, or in none but for what `position=` names;
  with times as integers, as text with offsets, or as instants; in parts, each restored from the checkpoint of the one
  before, at another parallelism.

Each way is compared with the plain one: a table, embedded, with one partition (programs over Python objects: with as
many, as these may depend on it). Equal must be the kind of the error, if there is one; otherwise rows and side
outputs in their order per key (of Python objects: in the order of all), the counts of the report, and, of a run in
one part, what it says of time and splits. Windows that functions and columns can compute must have the same rows by
both. What cannot be run in a way is counted as "way not possible", and a job that is refused as "refused": of both
there should be few.

A disagreement is shrunk by Hypothesis and printed as the scenario, which can be pasted, with the seed that repeats
it. It is mended at its root, and a plain test of the shrunk case goes to the unit tests of its concept.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from equipment.spark_sessions import spark_session
from fuzz import runs
from fuzz.budget import Fuzz
from fuzz.drawn_jobs import Job, Keys, jobs, mergeable, several
from fuzz.logs import key_columns, logs, used_keys
from fuzz.runs import Outcome, Scenario, Way, outcome_of, ways, ways_that_merge
from fuzz.watermark_strategies import strategies
from hypothesis import strategies as st

import flinkcore

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # of times that look wrong, as they are meant to

SECONDS_OF_A_TRIAL = 60
"""Of a processor's time; what waits for ever is told by pytest's own limit."""


@st.composite
def scenarios(
    draw: st.DrawFn,
    job: st.SearchStrategy[Job] | None = None,
    of_keys: Callable[[Keys], st.SearchStrategy[Job]] = jobs,
    of_ways: st.SearchStrategy[Way] = ways,
) -> Scenario:
    if job is None:
        job = of_keys(
            tuple(draw(st.lists(key_columns, min_size=1, max_size=draw(st.sampled_from([1, 1, 2, 3])))))
        )
    drawn = draw(job)
    value = draw(st.sampled_from(drawn.values)) if drawn.values else None
    used = draw(used_keys(drawn.keys))
    of_logs = []
    for _ in range(drawn.logs):
        keys = tuple(
            replace(key, layout=draw(st.sampled_from([key.layout, "plain", "sliced"]))) for key in drawn.keys
        )
        of_logs.append(draw(logs(keys, used, value, most=30 // drawn.logs)))
    return Scenario(
        drawn,
        tuple(of_logs),
        tuple(draw(strategies) for _ in of_logs),
        draw(st.sampled_from([0, 1, 5, 50, 200])),
        tuple(runs.possible(way, of_logs, drawn) for way in draw(st.lists(of_ways, min_size=1, max_size=4))),
        says_when=draw(st.booleans()),
    )


@contextmanager
def ending_within(seconds: int) -> Iterator[None]:
    """Interrupt a job that goes on without end."""

    def interrupt(*_: Any) -> None:
        raise TimeoutError(f"the job has worked for more than {seconds} s")

    before = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def kind_of(error: str | None) -> str | None:
    """Which error a run ended with."""
    kind = None if error is None else error.partition(":")[0]
    # Which of two faults in the data a job meets first depends on the way.
    return "DataError" if kind == "UserCodeError" else kind


def unnamed(facts: dict[str, Any]) -> dict[str, Any]:
    """What is known of splits without their names, which are those of the files where each file is one."""
    return {name: list(fact.values()) if isinstance(fact, dict) else fact for name, fact in facts.items()}


def compare(found: Outcome, expected: Outcome, way: Way) -> None:
    """Assert that a run gave what the plain run gave."""
    assert kind_of(found.error) == kind_of(expected.error), (way, found.error, expected.error)
    if expected.error is None:
        given = {tag: by_key for tag, by_key in found.outputs.items() if by_key}
        wanted = {tag: by_key for tag, by_key in expected.outputs.items() if by_key}
        assert given == wanted, way
        assert found.counts == expected.counts, way
        if not way.cuts:
            of_splits = unnamed if way.splits == "file" else dict
            assert of_splits(found.facts) == of_splits(expected.facts), way


def check_all_ways(fuzz: Fuzz, scenario: Scenario, session: Any = None) -> None:
    with ending_within(SECONDS_OF_A_TRIAL):
        expected = expected_of(scenario, 1)
        fuzz.count(scenario.job.shape)
        if expected.error is not None:
            fuzz.count(f"(refused: {kind_of(expected.error)})")
        elif not expected.rows:
            fuzz.count("(no rows)")
        for way in scenario.ways:
            found = outcome_of(scenario, way, session=session)
            if found is None:
                fuzz.count("(way not possible)")
            else:
                fuzz.count(f"(way {way.place}, {way.source}, {len(way.cuts)} cuts)")
                if way.splits != "column":
                    fuzz.count(f"(splits by {way.splits})")
                of_elements = scenario.job.of_elements and way.parallelism[0] > 1
                plain = expected
                if way.times != "integers":
                    fuzz.count(f"(times as {way.times})")
                if way.shuffled:
                    fuzz.count("(rows in no order)")
                source = "table" if way.shuffled else way.source
                if of_elements or source in UNORDERED:
                    plain = expected_of(scenario, way.parallelism[0] if of_elements else 1, source, way.times)
                compare(found, plain, way)
        other_path = scenario.job.other_path
        if other_path is not None and expected.error is None:
            other = outcome_of(scenario, Way(), other_path)
            assert other is not None
            assert other.error is None
            assert other.of_both_paths == expected.of_both_paths
            for name in ("events_read", "windowed", "late", "in_no_window"):
                assert other.counts.get(name, expected.counts[name]) == expected.counts[name]


UNORDERED = ("dataframe", "delta")
"""Sources whose rows have no positions."""


def expected_of(
    scenario: Scenario, parallelism: int, source: str = "table", times: str = "integers"
) -> Outcome:
    """What the plain way gives: a table, embedded; only of single elements does it depend on the parallelism.

    Of a DataFrame or a lake's table, arrival orders the rows, and then their content, of which how times are written is
    a part: the plain way is then a table without positions, with the same times.
    """
    plain = Way(parallelism=(parallelism,))
    if source in UNORDERED:
        plain = replace(plain, source="dataframe", times=times)
    expected = outcome_of(scenario, plain)
    assert expected is not None
    return expected


@pytest.mark.fuzz_share(6)
def test_jobs_over_keys_of_any_type_give_the_same_however_they_are_run(fuzz: Fuzz) -> None:
    def check(scenario: Scenario) -> None:
        check_all_ways(fuzz, scenario)

    fuzz.run(check, examples=2, rounds=20, scenario=scenarios())


@pytest.mark.fuzz_share(3)
def test_several_operators_and_logs_give_the_same_however_they_are_run(fuzz: Fuzz) -> None:
    def check(scenario: Scenario) -> None:
        check_all_ways(fuzz, scenario)

    fuzz.run(check, examples=2, rounds=15, scenario=scenarios(several))


@pytest.mark.fuzz_share(2)
def test_windows_give_the_same_where_map_tasks_merge_events(fuzz: Fuzz) -> None:
    def check(scenario: Scenario) -> None:
        check_all_ways(fuzz, scenario)

    drawn = scenarios(of_keys=mergeable, of_ways=ways_that_merge)
    fuzz.run(check, examples=2, rounds=6, scenario=drawn)


@pytest.mark.fuzz_share(2)
def test_a_sample_of_jobs_gives_the_same_on_a_real_session(fuzz: Fuzz) -> None:
    if fuzz.seconds is None:
        pytest.skip("runs with --fuzz-seconds: a job on a real session takes seconds")
    paths = {str(Path(module.__file__).parents[up]) for module, up in ((flinkcore, 1), (runs, 1))}  # type: ignore[type-var]
    with spark_session("local[2]", spark_executorEnv_PYTHONPATH=os.pathsep.join(paths)) as session:

        def check(scenario: Scenario, way: Way) -> None:
            there_is = runs.possible(way, scenario.logs, scenario.job)
            check_all_ways(fuzz, replace(scenario, ways=(there_is,)), session)

        # Of few examples, Hypothesis tries the first choice of the first draw in the simplest one alone.
        either = st.sampled_from([scenarios(), scenarios(several)] * 8).flatmap(lambda drawn: drawn)
        fuzz.run(check, examples=2, scenario=either, way=runs.ways_of_sessions)
