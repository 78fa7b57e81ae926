"""Random queries, planned and executed by real Flink, have the same rows, kinds of changes and steps here.

FLINKCORE_SQL_ORACLE is the directory of the tool that records Flink's answers (`run IN OUT`). FLINKCORE_SQL_QUERIES is
the number of queries, 100 unless given, and FLINKCORE_SQL_SEED the seed that repeats a run. The shrunk case of a
disagreement goes to `tests/golden/sql/random.jsonl`.
"""

import json
import os
import secrets
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from jobs.random_sql.scenarios import scenario
from jobs.sql_scenarios import Skipped, check

ORACLE = os.environ.get("FLINKCORE_SQL_ORACLE", "")
QUERIES = int(os.environ.get("FLINKCORE_SQL_QUERIES", "100"))


def flinks_answers(seed: str, folder: Path) -> list[str]:
    """Return the lines that the tool writes for random queries."""
    asked, answered = folder / "queries.jsonl", folder / "answers.jsonl"
    queries = (scenario(f"random-{seed}-{number}", f"{seed}/{number}") for number in range(QUERIES))
    asked.write_text("".join(f"{json.dumps(query)}\n" for query in queries))
    subprocess.run([f"{ORACLE}/run", asked, answered], check=True, capture_output=True)
    return answered.read_text().splitlines()


@pytest.mark.skipif(not ORACLE, reason="FLINKCORE_SQL_ORACLE does not name the tool that runs Flink SQL")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_queries_have_flinks_rows(tmp_path: Path) -> None:
    seed = os.environ.get("FLINKCORE_SQL_SEED") or secrets.token_hex(4)
    counts, wrong = Counter[str](), []
    for line in flinks_answers(seed, tmp_path):
        answered = json.loads(line)
        # The tool feeds tables alone, and may not know its own plan again.
        if "stream-exec-values" in line or answered.get("error", {}).get("at") == -1:
            counts["not compared"] += 1
            continue
        try:
            check(answered)
        except Skipped as reason:
            counts["refused by Flink" if "plan" not in answered else "refused"] += 1
            print(reason)
        except Exception as error:
            wrong.append(f"{answered['name']}: {answered['sql']}\n{answered['settings']}\n{error!r}")
        else:
            counts["equal"] += 1
    print(seed, dict(counts))
    assert not wrong, "\n\n".join([f"FLINKCORE_SQL_SEED={seed}", *wrong])
    assert counts["equal"] > 0.8 * QUERIES, f"FLINKCORE_SQL_SEED={seed}: {dict(counts)}"
