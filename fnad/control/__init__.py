"""Control flow that transforms and the compiler see as one operation: loops and branches with recorded bodies.

Reading order: _bodies (graphs as bodies, and what transforms make of them), _staging (a user's function as a body: types
and errors), _scan with _reverse and _products (the primitive behind every loop with a known number of steps), scan (scan, map,
associative_scan), cond (cond, switch), while_loop (while_loop, fori_loop).

Eagerly all of these are Python loops and branches. While a function is recorded, each is one equation.
"""
