"""Results of windows with a trigger per key, at C level; nothing here for Python."""
