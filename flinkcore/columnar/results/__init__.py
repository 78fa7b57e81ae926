"""Results of a replay: rows, progress, late events and the report. Private; see `flinkcore.JobResult`."""
