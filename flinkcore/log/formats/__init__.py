"""File formats of event logs. Private."""
