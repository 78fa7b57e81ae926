"""The columns of event logs: given by the user, or found in files. Private."""
