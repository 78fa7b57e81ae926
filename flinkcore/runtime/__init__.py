"""What executes a job element by element in one process, under the names of Flink's runtime classes."""
