"""The sampler of the adapters for libraries that have a storage of their own."""

import pickle

import numpy as np
import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")
from shoal.adapters._priorities import Priorities, checked_beta

ALPHA, EPSILON = 0.7, 1e-3


def filled(items, errors):
    priorities = Priorities(16, alpha=ALPHA, epsilon=EPSILON, seed=3)
    priorities.update(items, errors)
    return priorities


def test_the_tree_holds_the_errors_raised_to_alpha():
    errors = np.array([0.0, 0.5, 2.0, 7.0])
    priorities = filled([3, 14, 0, 7], errors)
    expected = np.zeros(16)
    expected[[3, 14, 0, 7]] = (errors + EPSILON) ** ALPHA
    np.testing.assert_allclose(priorities.values(), expected, atol=2e-6)
    np.testing.assert_allclose(priorities.probabilities([14, 5]), [expected[14] / expected.sum(), 0.0], atol=2e-6)


def test_only_items_with_a_priority_are_drawn_in_proportion_to_it():
    errors = np.array([1.0, 3.0, 5.0])
    priorities = filled([2, 9, 11], errors)
    items = np.concatenate([priorities.sample(64, beta=0.4).items for _ in range(300)])
    counts = np.bincount(items, minlength=16)
    assert counts.sum() == counts[[2, 9, 11]].sum()
    share = (errors + EPSILON) ** ALPHA
    np.testing.assert_allclose(counts[[2, 9, 11]] / len(items), share / share.sum(), atol=0.02)


def test_weights_are_those_of_the_formula():
    priorities = filled(np.arange(10), np.linspace(0.0, 4.0, 10))
    draw = priorities.sample(32, beta=0.6)
    weights = (10 * priorities.probabilities(draw.items)) ** -0.6
    np.testing.assert_allclose(draw.weights, weights / weights.max(), rtol=1e-4)


def test_the_last_error_counts_of_an_item_that_occurs_twice():
    priorities = filled([5, 1, 5, 5], [9.0, 1.0, 8.0, 2.0])
    np.testing.assert_allclose(priorities.values()[[5, 1]], (np.array([2.0, 1.0]) + EPSILON) ** ALPHA, atol=2e-6)


def test_an_item_without_an_error_gets_the_largest_so_far():
    priorities = filled([0, 1], [0.5, 6.0])
    priorities.update([2, 0])
    assert priorities.max_error == pytest.approx(6.0)
    np.testing.assert_allclose(priorities.values()[:3], np.full(3, (6.0 + EPSILON) ** ALPHA), atol=2e-6)


def test_nothing_is_left_after_clear():
    priorities = filled([0, 1], [0.5, 6.0])
    priorities.clear()
    assert len(priorities) == 0 and not priorities.values().any()
    assert priorities.max_error == 1.0
    priorities.update([7], [1.0])
    assert set(priorities.sample(8, beta=0.4).items) == {7}


def test_a_pickle_has_the_same_priorities():
    priorities = filled([3, 14, 0, 7], [0.0, 0.5, 2.0, 7.0])
    priorities.update([7], [0.25])
    again = pickle.loads(pickle.dumps(priorities))
    np.testing.assert_allclose(again.values(), priorities.values(), atol=2e-6)
    assert again.max_error == pytest.approx(7.0)


def test_a_pickle_without_an_exponent_draws_old_items_as_often_as_new_ones():
    priorities = Priorities(16, alpha=0.0, epsilon=0.0, seed=1)
    priorities.update([3, 7], [0.5, 0.0])
    again = pickle.loads(pickle.dumps(priorities))
    again.update([9], [5.0])
    np.testing.assert_array_equal(again.values()[[3, 7, 9]], np.ones(3))


def test_a_beta_is_taken_exactly_if_a_draw_takes_it():
    priorities = filled([0, 1], [0.5, 6.0])
    for beta in (0.0, 0.5, 1.0, 1.0 + 1e-9):
        assert checked_beta(beta) == beta
        priorities.sample(8, beta)
    for beta in (-0.1, 1.1, np.nan, np.inf):
        with pytest.raises(ValueError, match="beta is"):
            checked_beta(beta)
        with pytest.raises(ValueError, match="beta is"):
            priorities.sample(8, beta)


def test_nan_is_refused_and_changes_nothing():
    priorities = filled([0, 1], [0.5, 6.0])
    before = priorities.values()
    with pytest.raises(ValueError):
        priorities.update([0, 1], [1.0, np.nan])
    np.testing.assert_array_equal(priorities.values(), before)
