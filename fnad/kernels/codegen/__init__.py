"""Code of loops and of what stands in them: scalar expressions and their printers.

Reading order: `expr.py` (the expressions), `graph.py` (questions about them), `numpy_expr.py` (what they mean),
`python_expr.py` and `llvm_expr.py` (how they are printed; the latter alone imports llvmlite). The mathematical functions
written in them are in `fnad.kernels.scalar`.
"""
