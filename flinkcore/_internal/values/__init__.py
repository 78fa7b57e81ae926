"""Values that both APIs share: rows, their kinds, and the ends of the time axis. Private; see `flinkcore.common`."""
