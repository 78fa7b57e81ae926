"""Plumbing that all rooms share. Private: names and places change without notice."""
