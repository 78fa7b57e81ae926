"""Columns of Arrow: exact Python values, types, times and selections. Private."""
