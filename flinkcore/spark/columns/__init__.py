"""Columns of Spark: the types of Arrow in theirs, and jobs that are nothing else."""
