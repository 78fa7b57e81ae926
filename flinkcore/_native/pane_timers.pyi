"""Timers of keys in windows at C level; nothing here for Python."""
