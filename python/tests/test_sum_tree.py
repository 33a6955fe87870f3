"""The sum tree alone."""

import threading

import numpy as np
import pytest

import shoal


def full(capacity, seed=0):
    tree = shoal.SumTree(capacity)
    # Multiples of 2 ** -20 are kept exactly.
    priorities = np.random.default_rng(seed).integers(1, 1 << 21, capacity).astype(np.float32) / (1 << 20)
    tree.update(np.arange(capacity), priorities)
    return tree, priorities.astype(np.float64)


@pytest.mark.parametrize("capacity", [1, 2, 15, 16, 17, 1000, 65_537])
@pytest.mark.parametrize("ascending", [True, False])
def test_targets_fall_on_the_leaves_that_a_running_sum_says(capacity, ascending):
    tree, priorities = full(capacity)
    sums = np.cumsum(priorities)
    assert len(tree) == capacity
    assert tree.total == sums[-1]
    targets = np.random.default_rng(1).random(500) * tree.total
    if ascending:
        targets.sort()
    targets = np.floor(targets * (1 << 20)) / (1 << 20)
    np.testing.assert_array_equal(tree.find(targets), np.searchsorted(sums, targets, side="right"))


def test_the_total_itself_is_a_target():
    tree, _ = full(100)
    assert list(tree.find([0.0, tree.total])) == [0, 99]


def test_a_leaf_of_priority_zero_is_never_found():
    tree, _ = full(100)
    tree.update([0, 50, 99], [0.0, 0.0, 0.0])
    found = tree.find(np.linspace(0, tree.total, 10_000))
    assert set(found) == set(range(100)) - {0, 50, 99}


def test_the_last_of_two_priorities_for_one_leaf_counts():
    tree = shoal.SumTree(4)
    tree.update([1, 1, 2], [5.0, 0.25, 0.5])
    assert list(tree.priorities()) == [0, 0.25, 0.5, 0]
    assert tree.total == 0.75


def test_the_total_is_the_sum_of_the_leaves_after_a_million_updates_of_six_decades():
    tree, random = shoal.SumTree(4096), np.random.default_rng(2)
    for _ in range(256):
        tree.update(random.integers(0, 4096, 4096), (10 ** random.uniform(-3, 3, 4096)).astype(np.float32))
    tree.update(np.arange(4096), np.full(4096, 0.001, np.float32))
    leaves = tree.priorities()
    assert tree.total == leaves.sum()
    # All inner sums are exact as well: each leaf is found where it should be, the last as well as the first.
    np.testing.assert_array_equal(tree.find(np.cumsum(leaves) - leaves / 2), np.arange(4096))


def test_wrong_arguments_are_refused_and_change_nothing():
    tree, priorities = full(8)
    for indices, values, error, says in [
        ([3, 8], [1, 1], IndexError, "index 8"),
        ([-1], [1], IndexError, "index -1"),
        ([3, 4], [1, np.nan], ValueError, "priority NaN at position 1"),
        ([3], [np.inf], ValueError, "inf"),
        ([3], [-1], ValueError, "-1"),
        ([3], [6e5], ValueError, "600000"),
        ([3, 4], [1], ValueError, "2 indices and 1 priorities"),
        ([[3]], [1], ValueError, "one dimension"),
        ([0.5], [1], TypeError, "float64"),
    ]:
        with pytest.raises(error, match=says):
            tree.update(indices, np.asarray(values, np.float32))
    np.testing.assert_array_equal(tree.priorities(), priorities)
    for targets in ([-0.1], [tree.total * 1.01], [np.nan]):
        with pytest.raises(ValueError, match="a target is"):
            tree.find(targets)
    with pytest.raises(IndexError):
        tree.priorities([8])
    with pytest.raises(shoal.EmptyError, match="all leaves of the tree are zero"):
        shoal.SumTree(8).find([0.0])
    for capacity in (0, (1 << 24) + 1):
        with pytest.raises(ValueError, match="capacity"):
            shoal.SumTree(capacity)


def test_threads_may_find_while_others_update():
    tree, _ = full(1000)
    stop, failures = threading.Event(), []

    def find():
        random = np.random.default_rng(3)
        try:
            while not stop.is_set():
                # Only targets in the lower half: the total may shrink meanwhile, and a target beyond it is refused.
                assert set(tree.find(random.random(64) * tree.total * 0.5)) <= set(range(1000))
        except BaseException as failure:
            failures.append(failure)
            raise

    finders = [threading.Thread(target=find) for _ in range(2)]
    for finder in finders:
        finder.start()
    random = np.random.default_rng(4)
    for _ in range(2000):
        tree.update(random.integers(0, 1000, 64), random.random(64).astype(np.float32) + 0.5)
    stop.set()
    for finder in finders:
        finder.join()
    assert not failures
    assert tree.total == tree.priorities().sum()
