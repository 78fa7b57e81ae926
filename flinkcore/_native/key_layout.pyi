"""The layout of composite keys, at C level; nothing here for Python."""
