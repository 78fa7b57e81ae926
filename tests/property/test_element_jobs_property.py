"""Random jobs that run element by element against a plain Python model of their steps."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from flinkcore.common import Types
from flinkcore.datastream import DataStream, StreamExecutionEnvironment

Step = tuple[Callable[[DataStream], DataStream], Callable[[list[int]], Iterable[int]]]

STEPS: dict[str, Step] = {
    "map": (lambda s: s.map(lambda v: v * 3 + 1, Types.INT()), lambda vs: [v * 3 + 1 for v in vs]),
    "filter": (lambda s: s.filter(lambda v: v % 2 == 0), lambda vs: [v for v in vs if v % 2 == 0]),
    "flat_map": (
        lambda s: s.flat_map(lambda v: [v] * (v % 3), Types.INT()),
        lambda vs: [v for v in vs for _ in range(v % 3)],
    ),
    "rebalance": (lambda s: s.rebalance(), lambda vs: vs),
    "shuffle": (lambda s: s.shuffle(), lambda vs: vs),
    "rescale": (lambda s: s.rescale(), lambda vs: vs),
    "global": (lambda s: s.global_(), lambda vs: vs),
    "twice": (lambda s: s.union(s), lambda vs: vs + vs),
    "new chain": (lambda s: s.map(lambda v: v).start_new_chain(), lambda vs: vs),
    "by key": (lambda s: s.key_by(lambda v: v % 4).map(lambda v: v), lambda vs: vs),
}


@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(-20, 20), max_size=30),
    st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from([None, 1, 2, 3])), max_size=6),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_random_job_gives_what_its_model_gives(
    values: list[int], steps: list[tuple[str, int | None]], parallelism: int, chained: bool
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env.get_config().set_chaining_enabled(chained)
    stream, wanted = env.from_collection(values, Types.INT()), list(values)
    for name, own_parallelism in steps:
        make, model = STEPS[name]
        stream, wanted = make(stream), list(model(wanted))
        if own_parallelism is not None and name in ("map", "filter", "flat_map"):
            stream.set_parallelism(own_parallelism)
    assert Counter(stream.execute_and_collect()) == Counter(wanted)
    totals: dict[int, Any] = {}
    for value in wanted:
        totals[value % 5] = totals.get(value % 5, 0) + value
    last: dict[int, Any] = {}
    for key, total in (
        stream.map(lambda v: (v % 5, v)).key_by(lambda pair: pair[0]).sum(1).execute_and_collect()
    ):
        last[key] = total
    assert last == totals
