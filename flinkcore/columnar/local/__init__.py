"""Driver of jobs over columns in one process, without a JVM. Private."""
