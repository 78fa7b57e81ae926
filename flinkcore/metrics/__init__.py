"""PyFlink's ``pyflink.metrics`` names: what functions measure."""

from flinkcore.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
