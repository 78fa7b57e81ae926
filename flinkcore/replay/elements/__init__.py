"""Jobs that run element by element, in one thread."""
