"""What decides bits, as data: contracts, plans and constants, for kernels and oracles alike."""
