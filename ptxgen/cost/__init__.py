"""The cost model: predicted times of kernels, in µs.

=================  ==============================================================
``kernel``         the work of a kernel, as formulas over its problem's variables
``gpu``            peak rates of a GPU: clock, bandwidth, L2, multiplications a cycle
``tuning``         constants of kernels on a GPU, and times predicted from them
``fit``            fits the constants to measured times
``tunings/``       the constants, a JSON file a GPU
=================  ==============================================================

A predicted time chooses among kernels that return the same bits. It decides no bit.
"""
