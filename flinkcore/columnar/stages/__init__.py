"""Stages: the operators of a job over the key groups of one partition. Private."""
