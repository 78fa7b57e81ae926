"""Progress of replays: who is told, where it is shown, and where it is not."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkcore.columnar.results.progress import (
    Progress,
    ProgressBar,
    ProgressLine,
    ProgressMeter,
    listener_of_run,
)
from flinkcore.common import MIN_TIMESTAMP, Time, WatermarkStrategy
from flinkcore.datastream import FILE, DataStream, StreamExecutionEnvironment, TumblingEventTimeWindows
from flinkcore.datastream.aggregates import count
from flinkcore.errors import ConfigurationError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def half(seconds: float = 1) -> Progress:
    return Progress(50, 100, 1_000_000_000_000, seconds)


END = Progress(100, 100, 2**63 - 1, 2)


def counts(environment: StreamExecutionEnvironment | None = None) -> DataStream:
    log = pa.table({"ts": range(1000), "key": ["a", "b"] * 500})
    return (
        (environment or StreamExecutionEnvironment.get_execution_environment())
        .set_parallelism(2)
        .from_event_log(log, timestamp="ts")
        .assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps())
        .key_by("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
        .aggregate(n=count())
    )


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress is told of each batch, in an environment without tqdm."""
    monkeypatch.setattr(ProgressMeter, "INTERVAL_SECONDS", 0)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setenv("TERM", "xterm")


@contextmanager
def terminal() -> Iterator[Terminal]:
    """Standard error is one; pytest would put its own in the place of a fixture's."""
    with redirect_stderr(Terminal()) as shown:
        assert isinstance(shown, Terminal)
        yield shown


def shown_in_pipe(run: Callable[[], Any]) -> str:
    with redirect_stderr(io.StringIO()) as shown:
        run()
    return shown.getvalue()


def test_progress_is_shown_in_a_terminal_and_not_on_standard_output(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with terminal() as shown:
        counts().execute().to_arrow()
    assert "1,000 of 1,000 events  event time" in shown.getvalue()
    assert shown.getvalue().endswith("\n")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("take", [lambda stream: stream.to_arrow(), lambda stream: stream.execute().report])
def test_nothing_is_shown_in_a_pipe(take: Callable[[DataStream], Any]) -> None:
    assert shown_in_pipe(lambda: take(counts())) == ""


class OnlyWritten:
    """What programs put in the place of standard error, to send it to a log."""

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None: ...


class BrokenTerminal(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("progress", [None, True])
@pytest.mark.parametrize("stream", [lambda: None, OnlyWritten, closed, BrokenTerminal])
def test_a_job_runs_whatever_standard_error_is(
    stream: Callable[[], Any], progress: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as replaced:
        replaced.setattr(sys, "stderr", stream())
        assert counts().execute(progress=progress).to_arrow().num_rows == 200


def test_a_kernel_without_a_shell_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert shown_in_pipe(counts().to_arrow) == ""


def test_nothing_is_shown_in_a_terminal_that_cannot_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with terminal() as shown:
        counts().to_arrow()
    assert shown.getvalue() == ""


def test_nothing_is_shown_between_the_batches_that_a_program_takes() -> None:
    with terminal() as shown:
        list(counts().to_batches())
        counts().show(1)
        assert shown.getvalue() == ""
        list(counts().execute(progress=True).to_batches())
    assert "events" in shown.getvalue()


def test_the_setting_switches_progress_off_and_on() -> None:
    environment = StreamExecutionEnvironment.get_execution_environment()
    environment.get_config().set_progress("off")
    with terminal() as shown:
        counts(environment).to_arrow()
    assert shown.getvalue() == ""
    environment.configure({"flinkcore.progress": "on"})
    lines = shown_in_pipe(counts(environment).to_arrow).splitlines()
    assert [line.split()[2] for line in lines] == ["1", "1,000"]
    with pytest.raises(ConfigurationError, match="'loud'"):
        environment.get_config().set_progress("loud")  # type: ignore[arg-type]


def test_the_first_pass_is_told_file_by_file(tmp_path: Path) -> None:
    for number in range(5):
        pq.write_table(pa.table({"ts": [number], "key": ["a"]}), tmp_path / f"{number}.parquet")
    environment = StreamExecutionEnvironment.get_execution_environment()
    log = environment.from_event_log(tmp_path, timestamp="ts", split=FILE)
    states: list[Progress] = []
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    log.assign_timestamps_and_watermarks(strategy).execute(progress=states.append).to_arrow()
    of_times = [state for state in states if state.is_of_times]
    assert [(state.files_done, state.files_total) for state in of_times] == [(n, 5) for n in range(1, 6)]
    assert not any(state.is_complete for state in of_times)
    assert states[len(of_times) :] == [state for state in states if not state.is_of_times]
    assert states[-1].is_complete


def test_the_first_pass_says_how_long_it_still_takes() -> None:
    state = Progress(0, 0, MIN_TIMESTAMP, 3.0, files_done=1_000, files_total=4_000)
    assert state.seconds_left == 9
    assert str(state) == " 25.0 %  1,000 of 4,000 files: times of the log  about 9 s left"


def test_the_line_ends_where_the_replay_fails() -> None:
    with terminal() as shown, suppress(ZeroDivisionError), listener_of_run("auto") as listener:
        assert listener is not None
        listener(half())
        raise ZeroDivisionError
    assert shown.getvalue().count("\n") == 1
    assert shown.getvalue().endswith("\n")


def test_a_line_takes_the_place_of_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    shown = Terminal()
    line = ProgressLine(shown)
    for progress in (half(), END, END):
        line(progress)
    first, second = shown.getvalue().split("\r")[1:]
    assert first.startswith(" 50.0 %  50 of 100")
    assert len(first) < 30
    assert second.startswith("100.0 %")
    assert second.count("\n") == 1


def test_a_short_replay_leaves_no_line() -> None:
    shown = Terminal()
    ProgressLine(shown)(END)
    assert shown.getvalue() == ""


def test_lines_in_a_file_come_every_ten_seconds() -> None:
    shown = io.StringIO()
    line = ProgressLine(shown)
    for progress in (half(1), half(5), half(12), half(15), END):
        line(progress)
    assert [text.split()[0] for text in shown.getvalue().splitlines()] == ["50.0", "50.0", "100.0"]


class Bar:
    """What a bar of tqdm is asked for."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.start_t = 100.0
        self.disable = False
        self.n = 0
        self.postfix = ""
        self.is_closed = False

    def set_postfix_str(self, text: str, refresh: bool) -> None:
        self.postfix = text

    def refresh(self) -> None: ...

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    made: list[Bar] = []

    def tqdm(**settings: Any) -> Bar:
        made.append(Bar(**settings))
        return made[-1]

    module = ModuleType("tqdm.auto")
    module.tqdm = tqdm  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    return made


def test_a_terminal_has_a_bar_of_tqdm(bars: list[Bar]) -> None:
    with terminal() as shown:
        counts().to_arrow()
    times, bar = bars
    assert (times.settings["total"], times.n, times.is_closed, times.postfix) == (2, 2, True, "times")
    assert (bar.settings["total"], bar.n, bar.is_closed) == (1000, 1000, True)
    assert bar.postfix.startswith("event time ")
    assert bar.start_t < 100
    assert shown.getvalue() == ""


def test_a_notebook_has_a_bar_although_it_is_no_terminal(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: "a shell"))
    shown_in_pipe(counts().to_arrow)
    assert len(bars) == 2
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    shown_in_pipe(counts().to_arrow)
    assert len(bars) == 2


def test_each_run_has_a_bar_of_its_own(bars: list[Bar], tmp_path: Path) -> None:
    result = counts().execute()
    with terminal():
        result.write_parquet(tmp_path / "a")
        result.write_parquet(tmp_path / "b")
    assert [bar.is_closed for bar in bars] == [True] * 4
    assert [bar.settings["unit"] for bar in bars] == [" files", " events"] * 2


def test_a_bar_that_fails_does_not_fail_the_job(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Bar, "set_postfix_str")
    with terminal():
        assert counts().to_arrow().num_rows == 200
    assert len(bars) == 1


@pytest.mark.parametrize("disable", [False, True])
def test_the_bar_of_the_real_tqdm(disable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tqdm.auto")
    tqdm = pytest.importorskip("tqdm.auto").tqdm
    with terminal() as shown:
        bar = ProgressBar(lambda **settings: tqdm(**settings, disable=disable))
        for progress in (half(), END):
            bar(progress)
        bar.close()
    if disable:
        assert shown.getvalue() == ""
    else:
        assert "100/100" in shown.getvalue()
        assert "event time 2001-09-09 01:46:40" in shown.getvalue()


def test_a_short_replay_leaves_no_bar(bars: list[Bar]) -> None:
    bar = ProgressBar(sys.modules["tqdm.auto"].tqdm)
    bar(END)
    bar.close()
    assert bars == []
