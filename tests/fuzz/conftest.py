"""How much the fuzz tests of a run draw: a fixed set of examples, or new ones until a budget of seconds is spent.

``pytest tests/fuzz`` runs a few examples per test, the same ones each time. ``pytest tests/fuzz --fuzz-seconds 3600``
goes on with new seeds for an hour, which the fuzz tests of the run share. ``--fuzz-seed`` repeats the round of examples
that began with this seed, or, with ``--fuzz-seconds``, the rounds from this seed on. Seeds, and how many trials of each
shape ran, are in the summary at the end of the run.

A fuzz test takes the fixture ``fuzz``, and gives `Fuzz.run` a function that checks one example::

    from fuzz.budget import Fuzz

    @pytest.mark.fuzz_share(3)  # of the budget, where other tests have 1
    def test_damaged_files_are_refused(fuzz: Fuzz) -> None:
        def check(damage: Damage) -> None:
            fuzz.count(damage.kind)
            ...

        fuzz.run(check, examples=40, damage=damages())
"""

from collections.abc import Iterator

import pytest
from fuzz.budget import Fuzz, FuzzSession

SESSION = pytest.StashKey[FuzzSession]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fuzz_share(share): part of --fuzz-seconds, where other tests have 1")
    config.stash[SESSION] = FuzzSession(config.getoption("--fuzz-seconds"), config.getoption("--fuzz-seed"))
    config.pluginmanager.register(config.stash[SESSION])


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> Iterator[Fuzz]:
    """What this test may spend; see the module."""
    session = request.config.stash[SESSION]
    own = session.begin(request.node)
    yield own
    session.end(request.node, own)
