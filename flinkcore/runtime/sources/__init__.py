"""Where records come from: what sources are given to emit records, timestamps and watermarks."""
