"""Flink's operators, keyed state, timers and windows, which both engines call. Private."""
