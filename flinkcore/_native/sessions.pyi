"""Live sessions at C level; nothing here for Python."""
