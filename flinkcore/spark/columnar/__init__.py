"""Columnar jobs on Spark: one Spark job for the time plane, and one for each output that is asked for."""
