"""The page of a report in a real browser: its charts are drawn, it asks for nothing and complains of nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from flinkcore.datastream import StreamExecutionEnvironment
from flinkcore.examples.flights import hourly_flights

pytest.importorskip("vl_convert")

SETTING = "FLINKCORE_BROWSER"
NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-component-update",
    ),
    *("--no-first-run", "--window-size=1140,4400", "--virtual-time-budget=20000", "--enable-logging=stderr"),
)


@pytest.fixture
def browser() -> str:
    found = os.environ.get(SETTING) or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(
            f"there is no Chromium: {SETTING} names none, and none of {', '.join(NAMES)} is on the PATH"
        )
    return found


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder: the browser tells no requests for files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder))
    with server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def addresses(net_log: Path) -> list[str]:
    """What the browser has asked for."""
    log = json.loads(net_log.read_text(encoding="utf-8"))
    return [str(event["params"]["url"]) for event in log["events"] if "url" in event.get("params", {})]


def output_of(*command: str) -> tuple[str, str]:
    """What a browser puts out; one that hangs ends with all its processes."""
    # Sanitizers of the tests' own process are not for it.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
    )
    try:
        outputs = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == 0, outputs[1]
    return outputs


def drawn_page(browser: str, tmp_path: Path) -> str:
    """The document that the browser makes of page.html, which asks for nothing else, and complains of nothing."""
    net_log, shot = (tmp_path / name for name in ("net.json", "page.png"))
    with served(tmp_path) as address:
        dom, complaints = output_of(
            *(browser, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", f"--log-net-log={net_log}"),
            *(f"--screenshot={shot}", "--dump-dom", f"{address}/page.html"),
        )
    assert [line for line in complaints.splitlines() if ":CONSOLE" in line] == []
    asked = {url for url in addresses(net_log) if not url.startswith(("data:", "blob:"))}
    assert asked == {f"{address}/page.html"}
    assert shot.read_bytes().startswith(b"\x89PNG")
    return dom


def test_the_page_of_a_key_is_drawn_likewise(browser: str, tmp_path: Path) -> None:
    hours = hourly_flights(StreamExecutionEnvironment.get_execution_environment())
    hours.why("ATL").to_html(tmp_path / "page.html")
    dom = drawn_page(browser, tmp_path)
    assert 'data-drawn="1"' in dom
    assert len(re.findall(r"<svg [^>]*class=\"marks\"", dom)) == 1
    assert {"late", "fires", "fires again", "behind the watermark, but in time"} <= set(
        re.split(r"\s{2,}", re.sub("<[^>]*>", "  ", dom))
    )


def test_a_page_is_drawn_without_network_and_without_complaints(browser: str, tmp_path: Path) -> None:
    result = hourly_flights(StreamExecutionEnvironment.get_execution_environment()).execute()
    result.to_arrow()
    report = result.report
    report.to_html(tmp_path / "page.html")
    dom = drawn_page(browser, tmp_path)
    drawn = re.search(r'data-drawn="(\d+)"', dom)
    assert drawn is not None
    assert int(drawn[1]) == dom.count("<figure>") == len(re.findall(r"<svg [^>]*class=\"marks\"", dom)) == 11
    shown = unescape(re.sub("<[^>]*>", " ", re.sub("<script.*?</script>", "", dom, flags=re.DOTALL)))
    for number in (report.events_read, report.windowed, report.late, report.late_firings):
        assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", shown)
    assert {"Jan 02", "06:00", "ORD", "215 other splits", "behind 1 h to 2 h", "your 30 min"} <= set(
        re.split(r"\s{2,}", shown)
    )
    assert not re.search(r"\b(NaN|undefined|Infinity)\b", shown)
