"""Jobs that run element by element: each of their tasks is one of Spark's, and sends messages to the next."""
