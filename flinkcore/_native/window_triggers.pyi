"""When windows fire, at C level; nothing here for Python."""
