"""Memory: allocations, finding and checking what an address means, and who may touch it when."""
