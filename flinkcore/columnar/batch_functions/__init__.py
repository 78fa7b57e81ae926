"""Functions over batches: their calls, keys, state and timers. Private."""
