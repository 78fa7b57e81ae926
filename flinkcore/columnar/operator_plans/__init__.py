"""What a plan says about each kind of operator: a file for each. Private."""
