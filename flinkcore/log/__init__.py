"""Event logs: where their rows are, and how they are read."""
