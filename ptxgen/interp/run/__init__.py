"""Running kernels: decoding all of one, the machine that runs waves of it, and the profiler."""
