"""Files of a log: their listing, and partitions in their paths. Private."""
