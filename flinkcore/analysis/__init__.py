"""Analyses of logs and replays beyond their results, written once for this process and for Spark."""

from flinkcore.analysis.comparison import Comparison, compare
from flinkcore.analysis.point_in_time import as_of
from flinkcore.datastream.graph.pipeline_executor import KeyStory, LatenessFigures, StrategyComparison

__all__ = ["Comparison", "KeyStory", "LatenessFigures", "StrategyComparison", "as_of", "compare"]
