"""The transforms: functions in, functions out.

Reading order: vjp (the tape; grad), jvp, vmap, then what is composed of them: jacobian, linearize, custom rules,
checkpoint. A transform makes a fresh trace, runs the user's function on its tracers, and closes the trace.
"""
