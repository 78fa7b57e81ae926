"""Sources of a job over single elements, in the order in which their elements arrive. Private."""
