"""The engine of single elements: sources, tasks, clock and order of a job. Private."""
