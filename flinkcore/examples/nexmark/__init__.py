"""Nexmark, the queries over an auction site by which stream processors are compared, and a generator of its events.

Run one with ``python -m flinkcore.examples.nexmark q5``.
"""
