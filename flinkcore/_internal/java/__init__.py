"""Java's ways to write and to read values. Private."""
