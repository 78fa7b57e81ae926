"""Results of the keys of a window at C level; nothing here for Python."""
