"""Private: PyFlink's Table programs of SQL text; ``flinkcore.table`` has their names."""
