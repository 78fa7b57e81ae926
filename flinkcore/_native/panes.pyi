"""The keys of live windows at C level; nothing here for Python."""
