"""Tasks: chains of operators, the channels between them, and how they are made. Private."""
