"""A compiled plan of Flink SQL, for the documents."""
