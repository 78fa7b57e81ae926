"""Expressions of plans over Arrow columns, with the results of the code that Flink generates for them. Private."""
