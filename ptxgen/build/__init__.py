"""Makes images from specs: rendering, compiling with NVRTC, and the cache on disk."""
