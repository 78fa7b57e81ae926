"""Jobs that run element by element: their sources, clock and order, and the run of all of a job in one thread."""
