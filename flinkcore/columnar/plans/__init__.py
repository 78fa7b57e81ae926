"""From the graph of a job to what a replay does."""
