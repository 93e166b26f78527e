"""Loops over memory that NumPy has no fast form for. They know nothing of tracing: plain arrays in, plain arrays out."""
