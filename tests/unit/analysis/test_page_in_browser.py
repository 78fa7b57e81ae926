"""The page of a report in a real browser: its charts are drawn, it asks for nothing and complains of nothing."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
NOBODY = "not an origin"
"""Initiator in the net log of a request that the browser makes of its own accord."""


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


def asked_by_page(net_log: Path, address: str) -> set[str]:
    """Return what a page asked the network for: not what the browser asks for itself, such as updates and accounts.

    Parameters
    ----------
    address
        Scheme, host and port of the page.
    """
    log = json.loads(net_log.read_text(encoding="utf-8"))
    page_site = address.rpartition(":")[0]
    asked = set()
    for event in log["events"]:
        parameters = event.get("params", {})
        keys = (parameters.get(f"network_{kind}_key") for kind in ("isolation", "anonymization"))
        of_page = any(str(key).split(" ")[0] == page_site for key in keys)
        if parameters.get("initiator", NOBODY) != NOBODY or of_page:
            asked.add(str(parameters.get("url") or parameters.get("host")))
    return {url for url in asked if not url.startswith(("data:", "blob:")) and url != address}


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


@dataclass(frozen=True)
class Visit:
    """A visit of a page: its document, what it asked the network for, the console's lines and a screenshot."""

    dom: str
    asked: set[str]
    complaints: list[str]
    screenshot: bytes


def visit(browser: str, folder: Path) -> Visit:
    """Open page.html of a folder; addresses are relative to the page, where they are on its server."""
    net_log, shot = (folder / name for name in ("net.json", "page.png"))
    with served(folder) as address:
        dom, output = output_of(
            *(browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={net_log}"),
            *(f"--screenshot={shot}", "--dump-dom", f"{address}/page.html"),
        )
    asked = {url.removeprefix(f"{address}/") for url in asked_by_page(net_log, address)}
    complaints = [line for line in output.splitlines() if ":CONSOLE" in line]
    return Visit(dom, asked, complaints, shot.read_bytes())


def drawn_page(browser: str, folder: Path) -> str:
    """Return the document that the browser makes of page.html, which asks for nothing else and complains of nothing."""
    visited = visit(browser, folder)
    assert visited.complaints == []
    assert visited.asked == {"page.html"}
    assert visited.screenshot.startswith(b"\x89PNG")
    return visited.dom


TALKATIVE = """<link rel="stylesheet" href="http://style.example/a.css"><link rel="dns-prefetch" href="http://name.example">
<link rel="preconnect" href="http://early.example"><style>body { background: url(background.png) }</style>
<img src="image.png"><iframe src="https://frame.example/"></iframe>
<iframe sandbox="allow-scripts" srcdoc="<script>fetch('http://sandbox.example/')</script>"></iframe>
<script>
fetch("https://fetch.example/data");
navigator.sendBeacon("http://beacon.example/", "x");
new WebSocket("ws://socket.example/");
new Worker(URL.createObjectURL(new Blob(["fetch('http://worker.example/')"])));
setTimeout(() => { location = "http://elsewhere.example/" }, 3000);
console.error("a complaint");
</script>"""


def test_all_that_a_page_asks_for_and_complains_of_is_noticed(browser: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(TALKATIVE, encoding="utf-8")
    visited = visit(browser, tmp_path)
    expected = {
        "page.html",
        "background.png",
        "image.png",
        "http://style.example/a.css",
        "https://frame.example/",
    }
    expected |= {"http://sandbox.example/", "https://fetch.example/data", "http://beacon.example/"}
    expected |= {"ws://socket.example/", "http://worker.example/", "http://elsewhere.example/"}
    expected |= {"http://name.example", "http://early.example"}
    assert expected <= visited.asked
    assert not any("google" in url for url in visited.asked)
    assert any("a complaint" in line for line in visited.complaints)


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
