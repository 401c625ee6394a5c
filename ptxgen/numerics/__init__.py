"""Data that fixes the bits of results: contracts, plans and constants, for kernels and oracles."""
