"""Runnable jobs with their small data."""
