"""Random queries of Flink SQL over random tables, as scenarios for real Flink: each view is drawn over earlier ones.

A relation knows what may follow it: whether it has a rowtime, whether it changes rows, and whether Flink leaves open in
which order its rows of a step come. What depends on this order is drawn over relations of a known order only, or is
compared by its net effect.
"""
