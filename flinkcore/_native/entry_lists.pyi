"""Lists of entries at C level; nothing here for Python."""
