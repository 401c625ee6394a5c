"""From a spec to an image: rendering, compiling with NVRTC, and the cache on disk."""
