"""The plan of each kind of operator, in a file of its own. Private."""
