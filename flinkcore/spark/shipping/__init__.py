"""How flinkcore, modules of the user's and tasks come to Python workers, and errors come back."""
