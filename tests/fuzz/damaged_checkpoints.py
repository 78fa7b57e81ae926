"""A program of trials that restores checkpoints."""

import warnings
from pathlib import Path
from typing import Any

from fuzz.trials import serve
from jobs.checkpoint_trials import run_job

from flinkcore.errors import FlinkcoreError


def outcome(request: list[str]) -> dict[str, Any]:
    """Restore a job from a checkpoint.

    Parameters
    ----------
    request : list
        The name of the job, and the path of the checkpoint.

    Returns
    -------
    dict
        "outcome": "rows", with the "rows"; "refused", with the name of the "error"; or "raw error", with the "detail".
    """
    job, path = request
    try:
        return {"outcome": "rows", "rows": run_job(job, 1, restore_from=Path(path))}
    except FlinkcoreError as error:
        return {"outcome": "refused", "error": type(error).__name__}
    except Exception as error:  # what is raw is the finding
        return {"outcome": "raw error", "detail": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(outcome)
