"""Streams of event logs, whose steps work on whole columns. Private: `flinkcore.datastream` has their names."""
