"""Checks for derivatives and rules: `fnad.testing.check_grads` and friends.

compare holds tolerances and the comparison of pytrees, grads the checks of functions, audit the check of one primitive's
rules, programs random functions. `fnad.testing.strategies` draws arrays, pytrees and programs for hypothesis; it is imported
by name only, so that hypothesis is needed by nobody else.
"""

from fnad.testing.audit import check_primitive as check_primitive
from fnad.testing.compare import assert_trees_close as assert_trees_close
from fnad.testing.grads import check_grads as check_grads
from fnad.testing.grads import check_vmap as check_vmap
