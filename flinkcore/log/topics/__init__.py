"""Dumps of the topics of a cluster: their files, the places of records in them, and the log that they are. Private."""
