"""Options of the whole suite, its workers, and flinkcore's own fixtures where the package is not installed."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest
from equipment.durations import seconds_of_file
from hypothesis import HealthCheck, settings

from flinkcore import pytest_plugin

MOST_WORKERS = 4
"""Most processes that share the files of whole folders; each has a Spark of its own."""

Report = TypeVar("Report", pytest.CollectReport, pytest.TestReport)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--golden",
        metavar="DIR",
        help="folder with golden files (KIND.jsonl) to check instead of tests/golden",
    )
    parser.addoption(
        "--golden-sql",
        metavar="DIR",
        help="directory with golden scenarios of Flink SQL, a .jsonl file a kind; default: tests/golden/sql",
    )
    parser.addoption(
        "--golden-savepoints",
        metavar="DIR",
        help="folder with savepoints to read (cases/NAME/savepoint and expected.json) instead of those of tests/golden",
    )
    fuzz = parser.getgroup("fuzz", "tests/fuzz, where what they mean is told")
    fuzz.addoption(
        "--fuzz-seconds",
        type=float,
        metavar="N",
        help="run new random examples for so long; otherwise few, the same ones each time",
    )
    fuzz.addoption("--fuzz-seed", type=int, metavar="N", help="of the first round of random examples")


def pytest_configure(config: pytest.Config) -> None:
    # As in CI: tests do not assert durations, which a busy machine or a sanitizer makes many times longer.
    settings.register_profile(
        "without deadlines", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("without deadlines")
    if not config.pluginmanager.has_plugin("flinkcore"):
        config.pluginmanager.register(pytest_plugin, "flinkcore")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # In the background of a script, where Ctrl-C is ignored; also by programs that tests start and interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    # Tests start hundreds of interpreters, which would each compile the package, and pytest rewrites a thousand files.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # Before pytest-xdist reads its options.
    if is_shared_among_workers(config):
        # One more than cores: tests wait for Spark, for clocks and for programs in processes of their own.
        config.option.numprocesses = min(cores() + 1, MOST_WORKERS)
        config.option.dist = "loadfile"  # fixtures of modules are made once
        config.option.loadscopereorder = False  # files keep the order in which they are collected


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # Tests stay to the end, by the ten thousand: nobody looks for garbage among them, now or later.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        # Files that take long come first, so that all workers end at the same time; the order is that of all workers.
        items.sort(key=lambda item: (-seconds_of_file(item.nodeid), item.path))


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_shared_among_workers(config: pytest.Config) -> bool:
    """Whether more than single files are to run, by pytest-xdist, and nothing asks for one process."""
    option = config.option
    if not config.pluginmanager.has_plugin("xdist") or hasattr(config, "workerinput"):
        return False
    is_told = option.numprocesses is not None or option.dist != "no"
    in_one = option.usepdb or option.capture == "no" or option.fuzz_seconds or option.fuzz_seed is not None
    if is_told or in_one or option.collectonly:
        return False
    return cores() > 1 and all(Path(argument).is_dir() for argument in config.args)


def present_in_ci(report: Report) -> Report:
    """The report of a test, or of a file of them, which in CI fails where a package is missing: no test is left out."""
    if report.skipped and os.environ.get("CI") and "could not import" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = (
            f"{report.longrepr}: in CI, all that the extra `test` of pyproject.toml has is there"
        )
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = present_in_ci((yield))
    worker = getattr(collector.config, "workerinput", None)
    if worker is not None and isinstance(collector, pytest.Directory):
        # Each worker begins elsewhere: what one has compiled, with pytest's assertions, the others load.
        begin = len(report.result) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        report.result = report.result[begin:] + report.result[:begin]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return present_in_ci((yield))
