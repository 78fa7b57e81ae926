"""Checkpoints of jobs over columns. Private."""
