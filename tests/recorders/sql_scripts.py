"""Records the plans of tests/golden/scripts with Flink, by .ci/with_flink .venv/bin/python on this file."""

import json
from pathlib import Path
from typing import Any

from flinkcore.sql.planner.flink_process import PROCESS, required_libraries
from flinkcore.sql.planner.statements import statements_of

SCRIPTS = Path(__file__).parents[1] / "golden" / "scripts"


def answer_to(script: Path) -> dict[str, Any]:
    """Return what Flink answers to a script."""
    return PROCESS.answer(
        required_libraries(), [each.padded for each in statements_of(script.read_text())], {}
    )


if __name__ == "__main__":
    for path in sorted(SCRIPTS.glob("*.sql")):
        path.with_suffix(".json").write_text(json.dumps(answer_to(path)) + "\n")
