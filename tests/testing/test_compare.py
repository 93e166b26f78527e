"""The comparison of pytrees: what it accepts, and what its report says."""

from __future__ import annotations

import numpy as np
import pytest

from fnad.errors import GradientError
from fnad.testing import assert_trees_close
from fnad.testing.compare import difference, tolerance


def report(got, want, **options):
    with pytest.raises(GradientError) as caught:
        assert_trees_close(got, want, **options)
    return caught.value


def test_equal_trees_pass():
    tree = {"a": (np.arange(3.0), None), "b": [1.0, True, "name"]}
    assert_trees_close(tree, {"a": (np.arange(3.0), None), "b": [1.0, True, "name"]})
    assert_trees_close(np.zeros((0, 3)), np.zeros((0, 3)))


def test_nan_and_infinities_agree_with_themselves_only():
    odd = np.array([np.nan, np.inf, -np.inf])
    assert_trees_close(odd, odd.copy())
    assert report(odd, np.array([np.nan, np.inf, np.inf])).got["at"] == "[2]"
    assert report(np.array([0.0, np.nan]), np.array([0.0, 1.0])).got["at"] == "[1]"
    assert report(np.array([np.inf]), np.array([1e300])).got["at"] == "[0]"


def test_report_names_leaf_position_values_errors_and_tolerances():
    got = {"w": [np.zeros(2), np.array([[1.0, 2.0], [3.0, 4.0]])]}
    want = {"w": [np.zeros(2), np.array([[1.0, 2.5], [3.1, 4.0]])]}
    error = report(got, want, atol=1e-3, rtol=1e-2, what="gradients", names=("ours", "theirs"))
    assert error.got == {
        "at": "['w'][1][0, 1]",
        "ours": "2.0",
        "theirs": "2.5",
        "absolute error": "0.5 (atol 0.001)",
        "relative error": "0.2 (rtol 0.01)",
        "entries outside the tolerances": "2 of 4",
    }
    assert str(error).startswith("gradients differ\n  at: ['w'][1][0, 1]\n  ours: 2.0")


def test_worst_entry_is_measured_against_its_own_tolerance():
    want = np.array([1e6, 1.0])
    got = want + np.array([1.0, 0.5])  # the first error is larger, but allowed
    assert report(got, want, rtol=1e-3).got["at"] == "[1]"


@pytest.mark.parametrize(
    ("got", "want", "line"),
    [
        (np.zeros(3), np.zeros(2), "float64[3]"),
        (np.zeros(3), np.zeros(3, np.float32), "float64[3]"),
        (np.zeros(3), np.zeros((3, 1)), "float64[3]"),
    ],
)
def test_shape_and_dtype_must_agree(got, want, line):
    assert report(got, want).got["got"] == line


def test_dtype_may_be_left_out():
    assert_trees_close(np.ones(3, np.float32), np.ones(3), check_dtype=False)


def test_structures_must_agree():
    assert report({"a": 1.0, "b": {"c": 2.0}}, {"a": 1.0, "b": {"d": 2.0}}).got["at"] == "['b']"
    assert report([1.0], [1.0, 2.0]).got["at"] == "the root"


def test_other_leaves_are_compared_as_they_are():
    assert report({"name": "a"}, {"name": "b"}).got == {"at": "['name']", "got": "'a'", "want": "'b'"}
    assert report(np.array([1, 2]), np.array([1, 3])).got["at"] == "[1]"
    assert report(np.array([True, False]), np.array([True, True])).got["got"] == "False"


def test_complex_values():
    assert_trees_close(np.array([1 + 1j]), np.array([1 + 1j + 1e-13]))
    assert report(np.array([1 + 1j]), np.array([1 - 1j])).got["absolute error"].startswith("2 ")


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-9), (np.float32, 1e-4), (np.float16, 0.1), (np.complex64, 1e-4)])
def test_tolerances_follow_the_dtype(dtype, error):
    one = np.ones(2, dtype)
    assert_trees_close(one, (one * (1 + error / 100)).astype(dtype))
    report(one, (one * (1 + error)).astype(dtype))


def test_tolerance_of_the_coarsest_dtype_unless_given():
    assert tolerance([np.float64, np.float32]) == tolerance([np.float32])
    assert tolerance([np.int64, np.float64]) == tolerance([np.float64])
    assert tolerance([np.float64], atol=1.0) == (1.0, tolerance([np.float64]).rtol)
    assert tolerance([np.float32], numeric=True).atol > tolerance([np.float32]).atol


def test_difference_takes_the_scale_of_a_cancelling_sum():
    assert difference(1e-8, 0.0, tolerance([np.float64])) is not None
    assert difference(1e-8, 0.0, tolerance([np.float64]), scale=1e3) is None
