"""Nodes of plans as steps of a program over streams of logs. Private."""
