"""Chunks: the pieces of files and tables that are read at a time. Private."""
