"""Data that decides bits: contracts, plans and constants, read by kernels and oracles alike."""
