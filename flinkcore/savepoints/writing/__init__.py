"""Private. Writing savepoints: files of states, and the states of checkpoints as Flink's jobs have them."""
