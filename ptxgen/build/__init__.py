"""Builds kernels from specs: renders sources, compiles them with NVRTC, caches them on disk."""
