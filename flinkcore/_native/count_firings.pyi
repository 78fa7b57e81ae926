"""Results of windows of counted elements, at C level; nothing here for Python."""
