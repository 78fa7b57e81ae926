"""Values as people read them: times, durations, tables and HTML. Private."""
