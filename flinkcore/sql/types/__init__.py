"""Types of SQL, and how their values lie in Arrow columns. Private."""
