"""Execution units: register operations, memory, warp-wide and asynchronous instructions."""
