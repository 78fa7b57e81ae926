"""Flink SQL: compiled plans of Flink, run over event logs. Private."""
