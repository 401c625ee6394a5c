"""What values are and what scalar instructions make of them: functions on NumPy arrays."""
