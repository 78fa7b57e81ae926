"""Operators that handle a stream element by element."""
