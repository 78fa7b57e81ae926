"""The states of the automaton that searches for a pattern: Flink's ``NFACompiler`` for patterns of MATCH_RECOGNIZE."""

from __future__ import annotations

from dataclasses import dataclass, field

from flinkcore.datastream.graph.row_patterns import PatternVariable, RowPattern


@dataclass(eq=False)
class Transition:
    """A way out of a state.

    Attributes
    ----------
    target : PatternState
    variable : int or None
        Number of the variable that takes the row, or None for a transition that takes none.
    tests : list of (int, bool)
        Variables whose conditions are evaluated one after the other, and the values that they must have.
    """

    target: PatternState
    variable: int | None
    tests: list[tuple[int, bool]]


@dataclass(eq=False)
class PatternState:
    """A state with its transitions in the order in which Flink tries them; without any, it is the final one."""

    transitions: list[Transition] = field(default_factory=list)


def states_of(pattern: RowPattern) -> list[PatternState]:
    """Return the states of a pattern, the start first and the final state last."""
    final = first = PatternState()
    for number in reversed(range(len(pattern.variables))):
        first = _first_state(pattern.variables[number], number, first)
    return _reachable(first, final)


def _first_state(variable: PatternVariable, number: int, sink: PatternState) -> PatternState:
    """Return the first state of a variable after which the state `sink` follows."""
    least = max(1, variable.least)
    if variable.most is None:
        loop = PatternState()
        loop.transitions = [Transition(sink, None, []), Transition(loop, number, [(number, True)])]
        if variable.prefers_more:
            _yield_to(number, sink)
        return _times(variable, number, loop, sink, least, least)
    if (variable.least, variable.most) in ((1, 1), (0, 1)):
        return _single(number, sink, sink if variable.is_optional else None)
    return _times(variable, number, sink, sink, least, variable.most)


def _times(
    variable: PatternVariable, number: int, last: PatternState, sink: PatternState, least: int, most: int
) -> PatternState:
    if variable.prefers_more and least != most:
        _yield_to(number, sink)
    for _ in range(least, most):
        last = _single(number, last, sink)
    for _ in range(least - 1):
        last = _single(number, last, None)
    return _single(number, last, sink if variable.is_optional else None)


def _single(number: int, target: PatternState, without: PatternState | None) -> PatternState:
    """Return a state that takes one row, or none if there is a state to go on with without it."""
    state = PatternState([Transition(target, number, [(number, True)])])
    if without is not None:
        state.transitions.append(Transition(without, None, []))
    return state


def _yield_to(number: int, sink: PatternState) -> None:
    """Let a state leave rows that a greedy variable before it takes, as Flink's updateWithGreedyCondition."""
    for transition in sink.transitions:
        transition.tests.append((number, False))


def _reachable(first: PatternState, final: PatternState) -> list[PatternState]:
    found, waiting = [first], [first]
    while waiting:
        for transition in waiting.pop(0).transitions:
            if transition.target not in found:
                found.append(transition.target)
                waiting.append(transition.target)
    found.remove(final)
    return [*found, final]
