"""The execution of a job element by element in one process, with the names of Flink's runtime classes."""
