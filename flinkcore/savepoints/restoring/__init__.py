"""Private. Beginning with savepoints: states of Flink's operators as those of flinkcore's."""
