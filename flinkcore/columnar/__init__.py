"""The engine of columns: plans, stages, batch functions, results, and its driver in this process. Private."""
