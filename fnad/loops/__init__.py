"""Differentiable loops: a compiler from plain loop functions to their derivatives."""
