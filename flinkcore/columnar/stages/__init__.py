"""What runs the operators of a job over the key groups of a partition."""
