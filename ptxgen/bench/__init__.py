"""Benchmarks of ptxgen's operations against other libraries, and plots of the results.

``gemm`` times dense products, ``quantized`` products with quantized weights, ``attention``
attention and its gradients, ``sort`` sorts and searches, ``fft`` Fourier transforms, ``splats``
Gaussian splats, and ``kernels`` every kernel that is correct for one problem. ``routes`` plots
which kernel serves which problems, and ``report`` writes docs/performance.md from recorded runs.
``ptxgen bench --help`` lists all. Timing needs torch and a GPU; tables, roofline limits, statistics
and plots need neither.
"""
