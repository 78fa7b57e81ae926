"""Every program of this folder puts out under flinkcore what it put out under PyFlink.

PyFlink is not imported here: recorded/ has what it said (record.py), and programs that import it get flinkcore.
"""

import json
from importlib import import_module
from typing import Any

import pytest
from pyflink_programs import program_file
from pyflink_programs.canonical_values import canonical_outputs, comparable
from pyflink_programs.not_yet import NOT_YET

from flinkcore.datastream import StreamExecutionEnvironment

import_module("flinkcore.pyflink")

PROGRAMS = list(program_file.names())

FURTHER_TRIES = 2
"""Of programs on the system clock: a machine that stands still for half a second puts other elements together."""


def recorded(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((program_file.RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return content


def outputs_under_flinkcore(name: str) -> dict[str, list[Any]]:
    module = program_file.load(name)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
    env.set_clock(program_file.clock(name))
    return canonical_outputs(module.run(env))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_puts_out_what_it_puts_out_under_pyflink(name: str) -> None:
    expected = recorded(name)
    try:
        outputs = outputs_under_flinkcore(name)
    except Exception as error:
        if name not in NOT_YET:
            raise
        pytest.skip(
            f"not yet in flinkcore: {', '.join(NOT_YET[name])} ({type(error).__name__}: {error!s:.120})"
        )
    ordered = expected["ordered"]
    wanted = comparable(expected["outputs"], ordered)
    for _ in range(FURTHER_TRIES if program_file.clock(name) == "system" else 0):
        if comparable(outputs, ordered) != wanted:
            outputs = outputs_under_flinkcore(name)
    assert comparable(outputs, ordered) == wanted
    assert name not in NOT_YET, f"{name} runs under flinkcore: take it out of NOT_YET in not_yet.py"


def test_every_program_is_recorded_and_every_record_has_its_program() -> None:
    recorded_names = sorted(path.stem for path in program_file.RECORDED.glob("*.json"))
    assert recorded_names == PROGRAMS


def test_only_programs_are_said_to_be_missing_something() -> None:
    assert set(NOT_YET) <= set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_record_is_of_the_program_as_it_is(name: str) -> None:
    assert recorded(name)["sha256"] == program_file.sha256(name), f"run record.py {name} with PyFlink again"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_puts_out_something(name: str) -> None:
    assert any(recorded(name)["outputs"].values())
