"""Flink's streaming semantics, exactly, inside a PySpark batch job, at the speed of a native columnar engine."""

__version__ = "0.1.0"
