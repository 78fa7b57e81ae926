"""Shared by the window operators at C level; nothing here for Python."""
