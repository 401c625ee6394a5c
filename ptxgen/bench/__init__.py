"""Benchmarks of our operations beside other libraries, and plots of the results.

``gemm`` times the GEMM triad, ``nf4`` products with NF4 weights, ``attention`` attention and its
gradients, and ``kernels`` every kernel that is correct for one problem. ``routes`` plots which
kernel serves which problems. Timing needs torch and a GPU; the tables, the roofline limits, the
statistics and the plots need neither.
"""
