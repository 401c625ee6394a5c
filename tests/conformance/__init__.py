"""A corpus of small PTX kernels, and what an H200 answers to them."""
