"""The units that carry instructions out: on registers, on memory, together, asynchronously."""
