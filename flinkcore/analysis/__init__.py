"""Analyses of logs and replays beyond their results, written once for this process and for Spark."""

from flinkcore.analysis.comparison import Comparison, compare
from flinkcore.analysis.point_in_time import as_of

__all__ = ["Comparison", "as_of", "compare"]
