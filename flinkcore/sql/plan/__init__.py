"""Compiled plans as Flink writes them: nodes, edges and expressions. Private."""
