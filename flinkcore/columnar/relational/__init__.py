"""Relational operators: the rows that they keep, and what their native kernels have in common."""
