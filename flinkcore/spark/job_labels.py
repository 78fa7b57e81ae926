"""What Spark's UI says of the jobs of a replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flinkcore.spark.session import is_classic

_DESCRIPTION = "spark.job.description"


@contextmanager
def job_description(spark: Any, description: str) -> Iterator[None]:
    """Let Spark's UI describe the jobs that this thread runs within the block.

    A description of the user's is kept in front of it, and set again behind the block. Spark Connect has no
    descriptions.
    """
    if not is_classic(spark):
        yield
        return
    context = spark.sparkContext
    of_user = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, f"{of_user}: {description}" if of_user else description)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, of_user)
