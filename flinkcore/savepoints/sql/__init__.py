"""States of Flink SQL's operators: their names and types, and the tables of the same operators in a checkpoint."""
