"""Tracing: values that look like arrays, primitives with rules, the graph. Knows not one operation.

Reading order: aval (shape and dtype), dispatch (NumPy callable -> ours), tracer (what the user's function
receives), primitive (an operation and its rules), graph (recorded equations). Operations live in
`fnad/primitives`, transforms in `fnad/transforms`.
"""
