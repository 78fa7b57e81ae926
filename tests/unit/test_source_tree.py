"""What an import from a source tree without compiled kernels says."""

import shutil
import subprocess
import sys
from pathlib import Path

import flinkcore


def test_an_import_from_a_source_tree_that_is_not_compiled_says_what_to_do(tmp_path: Path) -> None:
    package = Path(flinkcore.__file__).parent
    shutil.copytree(
        package, tmp_path / "flinkcore", ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.parquet")
    )
    done = subprocess.run(
        [sys.executable, "-c", "import flinkcore.datastream, flinkcore.columnar.local.embedded_replay"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert f"ImportError: flinkcore was imported from {tmp_path}, a source tree" in done.stderr
    assert "pip install -e ." in done.stderr
