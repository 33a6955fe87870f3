"""Flashbax: buffers that are JAX arrays. Every call is compiled; the state is donated to it and returned by it."""

import pickle

import flashbax
import jax
import numpy
from flashbax.buffers import sum_tree
from jax import numpy as jnp

from . import ALPHA, BETA, Buffer, Tree


class JaxTree(Tree):
    """float32, binary; `set_batch_scan` is what the library itself uses on a CPU."""

    label = "Flashbax"

    def __init__(self, capacity):
        self.state = sum_tree.init(capacity)
        depth = self.state.tree_depth
        level = numpy.zeros(2**depth, numpy.float32)
        level[:capacity] = 0.5
        levels = [level]
        while len(levels[-1]) > 1:
            levels.append(levels[-1].reshape(-1, 2).sum(1))
        # Built bottom up: the library's own updates would take minutes.
        self.state = self.state.replace(nodes=jnp.asarray(numpy.concatenate(levels[::-1])))
        self.set = jax.jit(sum_tree.set_batch_scan, donate_argnums=0)
        self.draw = jax.jit(lambda state, targets: jax.vmap(sum_tree.sample, in_axes=(None, None, 0))(state, None, targets))

    def native(self, indices, priorities):
        return jnp.asarray(indices.astype(numpy.int32)), jnp.asarray(priorities)

    def native_targets(self, fractions):
        return jnp.asarray((fractions * 0.999).astype(numpy.float32))

    def update(self, indices_and_priorities):
        self.state = self.set(self.state, *indices_and_priorities)
        self.state.nodes.block_until_ready()

    def find(self, targets):
        self.draw(self.state, targets).block_until_ready()

    def total(self):
        return float(self.state.nodes[0])

    def leaves(self):
        return numpy.asarray(self.state.nodes)[2**self.state.tree_depth - 1 :]


class Flashbax(Buffer):
    """`make_prioritised_item_buffer`. The library gives probabilities; the weights are computed here, in the compiled call."""

    label = "Flashbax"
    takes_numpy = False

    def __init__(self, schema, capacity, batch_size):
        self.capacity = capacity
        self.buffer = flashbax.make_prioritised_item_buffer(
            max_length=capacity, min_length=1, sample_batch_size=batch_size, add_batches=True, priority_exponent=ALPHA, device="cpu",
        )
        example = {name: jnp.zeros(shape, jnp.int32 if dtype == numpy.int64 else dtype) for name, (shape, dtype) in schema.items()}
        self.state, self.key = self.buffer.init(example), jax.random.PRNGKey(0)
        self.compiled_add = jax.jit(self.buffer.add, donate_argnums=0)
        self.compiled_update = jax.jit(self.buffer.set_priorities, donate_argnums=0)

        def draw(state, key):
            key, subkey = jax.random.split(key)
            drawn = self.buffer.sample(state, subkey)
            weights = (drawn.probabilities * capacity) ** -BETA
            return drawn.experience, drawn.indices, weights / weights.max(), key

        self.compiled_sample = jax.jit(draw)

    def native(self, rows):
        return {name: jnp.asarray(values.astype(numpy.int32) if values.dtype == numpy.int64 else values) for name, values in rows.items()}

    def native_priorities(self, priorities):
        return jnp.asarray(priorities)

    def native_indices(self, indices):
        return jnp.asarray(indices)

    def add(self, rows):
        if isinstance(rows["reward"], numpy.ndarray):
            rows = self.native(rows)
        self.state = self.compiled_add(self.state, rows)
        jax.block_until_ready(self.state.current_index)

    def sample(self):
        fields, indices, weights, self.key = self.compiled_sample(self.state, self.key)
        jax.block_until_ready((fields, weights))
        return fields, indices, weights

    def update(self, drawn, priorities):
        self.state = self.compiled_update(self.state, drawn, priorities)
        jax.block_until_ready(self.state.sum_tree_state.nodes)

    def priorities(self):
        tree = self.state.sum_tree_state
        return numpy.asarray(tree.nodes)[2**tree.tree_depth - 1 :][: self.capacity]

    def total(self):
        return float(self.state.sum_tree_state.nodes[0])

    def save(self, path):
        with open(path, "wb") as file:
            pickle.dump(jax.device_get(self.state), file)

    def load(self, path):
        with open(path, "rb") as file:
            self.state = jax.device_put(pickle.load(file))
        return self


TREES = {"flashbax": JaxTree}
BUFFERS = {"flashbax": Flashbax}
