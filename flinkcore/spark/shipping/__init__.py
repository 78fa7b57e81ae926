"""Shipping of flinkcore, the user's modules and tasks to Python workers, and of errors back."""
