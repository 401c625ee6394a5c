"""Execution of kernels: decoding, the machine that runs waves of CTAs, and the profiler."""
