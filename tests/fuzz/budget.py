"""What a fuzz test may spend of the budget of its run, and what it has run; `conftest` tells how to use it."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

_SUMMARY = "fuzz"

SLOW_OR_LARGE = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


@dataclass
class Fuzz:
    """What one fuzz test may spend, and what it has run.

    Parameters
    ----------
    name : str
        Of the test.
    seconds : float or None
        It may spend; None: as many rounds of examples as it wants.
    seed : int or None
        Of the first round; None: 0.
    """

    name: str
    seconds: float | None
    seed: int | None
    shapes: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    rounds: int = 0
    failed_seed: int | None = None
    failed_after_s: float = 0.0
    spent_s: float = 0.0

    def count(self, shape: str) -> None:
        """Count a trial of a shape, in any words, for the summary of the run."""
        self.shapes[shape] += 1

    def run(
        self,
        check: Callable[..., None],
        *,
        examples: int,
        rounds: int = 1,
        **strategies: st.SearchStrategy[Any],
    ) -> None:
        """Check drawn examples: some rounds of them, or as many as the budget has time for.

        Each round begins with the simplest example, which is tried in the first one only. Of each new one Hypothesis
        makes several others of the round: where examples are large, many rounds of two find more.

        Parameters
        ----------
        check
            Called with an example of each strategy; raises what is found.
        examples : int
            Of a round.
        rounds : int
            Without a budget.
        **strategies
            By the names of the parameters of `check`.
        """
        start = time.monotonic()
        try:
            while self.rounds == 0 or self._goes_on(rounds, start):
                self._run_round(check, examples, strategies, start)
                self.rounds += 1
        finally:
            self.spent_s += time.monotonic() - start

    def _goes_on(self, rounds: int, start: float) -> bool:
        if self.seconds is not None:
            return time.monotonic() - start < self.seconds
        return self.seed is None and self.rounds < rounds

    def _run_round(
        self,
        check: Callable[..., None],
        examples: int,
        strategies: dict[str, st.SearchStrategy[Any]],
        start: float,
    ) -> None:
        seed = self.rounds if self.seed is None else self.seed + self.rounds
        failing = False
        is_tried_already = self.rounds > 0

        def checked(**drawn: Any) -> None:
            nonlocal failing, is_tried_already
            if is_tried_already:  # the simplest example
                is_tried_already = False
                return
            if self.seconds is not None and not failing and time.monotonic() - start >= self.seconds:
                return  # what is left of the round
            self.trials += 1
            try:
                check(**drawn)
            except Exception:
                if not failing:
                    failing, self.failed_after_s = True, time.monotonic() - start
                raise

        checked.__name__ = checked.__qualname__ = check.__name__
        round_of = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.target, Phase.shrink),
            suppress_health_check=SLOW_OR_LARGE,
            report_multiple_bugs=False,
        )(given(**strategies)(checked))
        try:
            hypothesis.seed(seed)(round_of)()
        except Exception as error:
            self.failed_seed = seed
            if hasattr(error, "add_note"):
                error.add_note(f"Repeat this round of examples with --fuzz-seed {seed}")
            raise

    def summary(self) -> str:
        """What ran, in one line."""
        seeds = "fixed examples"
        if self.seed is not None:
            seeds = f"seeds {self.seed} to {self.seed + max(self.rounds - 1, 0)}"
        if self.failed_seed is not None:
            seeds += f", failed after {self.failed_after_s:.0f} s with --fuzz-seed {self.failed_seed}"
        shapes = ", ".join(f"{shape} {count}" for shape, count in sorted(self.shapes.items()))
        return (
            f"{self.name}: {self.trials} trials in {self.spent_s:.0f} s ({seeds}): {shapes or 'not counted'}"
        )


class FuzzSession:
    """Shares the budget of a run among its fuzz tests; what one leaves is for those after it.

    Parameters
    ----------
    seconds : float or None
    seed : int or None
    """

    def __init__(self, seconds: float | None, seed: int | None) -> None:
        self._left = seconds
        self._seed = secrets.randbelow(10**9) if seed is None and seconds is not None else seed
        self._waiting: dict[str, float] = {}
        self._summaries: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._waiting = {
            item.nodeid: share_of(item)
            for item in session.items
            if "fuzz" in getattr(item, "fixturenames", ())
        }

    def begin(self, item: pytest.Item) -> Fuzz:
        shares = sum(self._waiting.values())
        share = self._waiting.pop(item.nodeid, 1.0)
        seconds = None if self._left is None else self._left * share / max(shares, share)
        return Fuzz(item.nodeid.rpartition("::")[2], seconds, self._seed)

    def end(self, item: pytest.Item, fuzz: Fuzz) -> None:
        if self._left is not None:
            self._left = max(self._left - fuzz.spent_s, 0.0)
        item.user_properties.append((_SUMMARY, fuzz.summary()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Reports come from the process that ran the test.
        if report.when == "teardown":
            self._summaries += [str(value) for name, value in report.user_properties if name == _SUMMARY]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._summaries:
            terminalreporter.section("fuzz")
        for summary in self._summaries:
            terminalreporter.write_line(summary)


def share_of(item: pytest.Item) -> float:
    """How much of the budget a test gets, where other tests have 1."""
    marker = item.get_closest_marker("fuzz_share")
    return 1.0 if marker is None else float(marker.args[0])
