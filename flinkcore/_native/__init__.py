"""Contracts of the native kernels; the implementations are in the top-level folder `_native`."""
