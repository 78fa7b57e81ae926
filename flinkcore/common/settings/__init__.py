"""Flink's settings, and the types of their values. Private."""
