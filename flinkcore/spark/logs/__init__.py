"""Event logs as Spark's tasks read them: chunks of files, and partitions of a DataFrame."""
