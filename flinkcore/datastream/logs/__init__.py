"""Streams of event logs, whose steps work on whole columns."""
