"""Results of sessions at C level; nothing here for Python."""
