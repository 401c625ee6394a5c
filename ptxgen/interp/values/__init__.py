"""Scalar instructions of PTX and exact float arithmetic, as functions on NumPy arrays."""
