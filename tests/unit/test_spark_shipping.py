"""The package on its way to the executors."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from flinkcore.spark import ship_flinkcore


class Settings(dict[str, str]):
    """Settings of a session."""

    set = dict.__setitem__


class RecordingSession:
    """A remote session."""

    def __init__(self) -> None:
        self.archives: list[Path] = []
        self.conf = Settings()

    def addArtifact(self, path: str, **kind: bool) -> None:
        assert kind == {"archive": True}
        self.archives.append(Path(path.partition("#")[0]))


def test_the_archive_has_the_package_and_is_made_once() -> None:
    session = RecordingSession()
    ship_flinkcore(session)
    ship_flinkcore(session)
    assert len(set(session.archives)) == 1
    names = zipfile.ZipFile(session.archives[0]).namelist()
    assert "flinkcore/spark/shipping.py" in names
    assert any(name.startswith("flinkcore/_native/windows.") and name.endswith(".so") for name in names)


def test_the_archive_is_gone_with_the_process() -> None:
    program = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from test_spark_shipping import RecordingSession, ship_flinkcore\n"
        "session = RecordingSession()\n"
        "ship_flinkcore(session)\n"
        "assert session.archives[0].exists()\n"
        "print(session.archives[0])\n"
    )
    package = Path(sys.modules["flinkcore"].__file__ or "").parents[1]
    done = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(package)],
        capture_output=True,
        text=True,
        check=True,
    )
    archive = Path(done.stdout.strip())
    assert archive.name.endswith(".zip")
    assert not archive.parent.exists()
