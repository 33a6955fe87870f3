"""RLlib: its segment tree, a loop in Python for every element. Its buffers hold episodes and are not measured."""

import numpy
from ray.rllib.execution.segment_tree import SumSegmentTree

from . import Tree


class PythonTree(Tree):
    label = "RLlib"

    def __init__(self, capacity):
        size = 1 << (capacity - 1).bit_length()
        self.tree = SumSegmentTree(size)
        # Built bottom up, to the state that one insert after the other would give.
        nodes = numpy.zeros(2 * size)
        nodes[size : size + capacity] = 0.5
        while size > 1:
            nodes[size // 2 : size] = nodes[size : 2 * size].reshape(-1, 2).sum(1)
            size //= 2
        self.tree.value = nodes.tolist()

    def native(self, indices, priorities):
        return list(zip(indices.tolist(), priorities.astype(numpy.float64).tolist()))

    def native_targets(self, fractions):
        return (fractions * self.tree.sum() * 0.999999).tolist()

    def update(self, indices_and_priorities):
        tree = self.tree
        for index, priority in indices_and_priorities:
            tree[index] = priority

    def find(self, targets):
        find = self.tree.find_prefixsum_idx
        for target in targets:
            find(target)

    def total(self):
        return self.tree.sum()

    def leaves(self):
        return self.tree.value[self.tree.capacity :]


TREES = {"rllib": PythonTree}
