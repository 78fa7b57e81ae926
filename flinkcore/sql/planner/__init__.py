"""Private: scripts of Flink SQL, planned by Flink's own planner in a process of its own; plans are cached."""
