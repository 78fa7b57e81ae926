"""Relational operators: kept rows, the contract of native kernels, and state in checkpoints. Private."""
