"""What a log and its replays tell beyond their results: analyses, written once for this process and for Spark."""

from flinkcore.analysis.point_in_time import as_of

__all__ = ["as_of"]
