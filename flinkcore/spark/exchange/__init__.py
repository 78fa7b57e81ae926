"""Rows of shuffles: what goes from task to task, in few bytes, to the partition that its sender has chosen."""
