"""Text formats of functions of SQL: JSON, its paths, Java's patterns of dates and of ``String.format``. Private."""
