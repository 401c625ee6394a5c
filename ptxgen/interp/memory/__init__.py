"""Memory of the interpreter: allocations, address checks, and race detection."""
