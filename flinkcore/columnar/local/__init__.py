"""The driver of jobs over columns in one process, without a JVM."""
