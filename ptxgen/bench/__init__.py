"""Benchmarks: our operations beside their peers, and the plots of what they show.

``gemm`` times the GEMM triad beside its peers, ``nf4`` products with NF4 weights, ``attention``
that, ``kernels`` every kernel that a problem admits, ``routes`` draws which kernel serves which
problems. Timing needs torch and a GPU; the tables, the floors, the statistics and the plots need
neither.
"""
