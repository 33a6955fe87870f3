"""One file per library, each with up to three adapters: its tree, its buffer, and its buffer of several processes.

An adapter turns what the bench wants into the library's own calls, in the way its documentation shows. Whatever a user
would have ready beforehand (the library's own containers) is made by `native` and `native_priorities`, which are not timed.
"""

import importlib
import os

# Read when the libraries are loaded. One thread each: what several do at once is a bench of its own.
os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")})
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("RL_WARNINGS", "0")

NAMES = ["shoal", "cpprb", "tianshou", "torchrl", "flashbax", "rllib", "reverb", "stable_baselines3", "numpy_loop"]
ALPHA, BETA = 0.6, 0.4


class Tree:
    """A sum tree over `capacity` priorities."""

    label = ""

    def __init__(self, capacity):
        raise NotImplementedError

    def native(self, indices, priorities):
        return indices, priorities

    def native_targets(self, fractions):
        """What `find` is given for targets at these fractions of the total."""
        raise NotImplementedError

    def update(self, indices_and_priorities):
        raise NotImplementedError

    def find(self, targets):
        raise NotImplementedError

    def total(self):
        """The sum at the root, or None where the library does not show it."""
        return None

    def leaves(self):
        """All priorities, where there is a `total`."""
        raise NotImplementedError


class Buffer:
    """A replay of `capacity` rows of `schema` that draws batches of `batch_size`."""

    label = ""
    prioritized = True
    # Rows that `add` takes at once while the buffer is filled.
    fill_rows = 1024
    # Whether `native` is needed: then adding NumPy arrays as they come is measured, too.
    takes_numpy = True
    # How the other processes of a bench come by it.
    start_method = "fork"
    most_samplers = 64
    samples_in_parent = False

    def __init__(self, schema, capacity, batch_size):
        raise NotImplementedError

    def native(self, rows):
        return rows

    def native_priorities(self, priorities):
        return priorities

    def native_indices(self, indices):
        return indices

    def name_of(self, row):
        """How `update` is told of the row in slot `row`."""
        import numpy

        return numpy.array([row])

    def drawn_row(self, row):
        """What a batch in which `row` was drawn gives to `update`: slots, unless the library knows better names."""
        return self.native_indices(self.name_of(row))

    def size_of(self, drawn):
        return len(drawn)

    def add(self, rows):
        raise NotImplementedError

    def sample(self):
        """A batch: (its fields, what `update` wants to know of it, its importance weights)."""
        raise NotImplementedError

    def update(self, drawn, priorities):
        raise NotImplementedError

    def priorities(self):
        """What the tree holds, or None where the library does not show it."""
        return None

    def total(self):
        return None

    def array(self, fields, name):
        """A field of a batch as NumPy."""
        import numpy

        return numpy.asarray(fields[name])

    def save(self, path):
        raise NotImplementedError

    def load(self, path):
        """A buffer like this one from a file."""
        raise NotImplementedError

    def close(self):
        pass


def load(name, kind):
    """The adapters of a kind (`Tree`, `Buffer`, `Shared`) that a library has: a list of (label, class)."""
    module = importlib.import_module(f"{__name__}.{name}")
    return list(getattr(module, {"Tree": "TREES", "Buffer": "BUFFERS", "Shared": "SHARED"}[kind], {}).items())


def versions(names):
    """Exact versions of what was measured, from the packages' own records."""
    from importlib import metadata

    packages = {
        "shoal": ["shoal"], "shoal_before": [], "cpprb": ["cpprb"], "tianshou": ["tianshou", "numba"], "torchrl": ["torchrl", "tensordict", "torch"],
        "flashbax": ["flashbax", "jax"], "rllib": ["ray"], "reverb": ["dm-reverb", "tensorflow-cpu"],
        "stable_baselines3": ["stable-baselines3", "torch"], "numpy_loop": ["numpy"],
    }
    found = {"shoal_before": os.environ.get("SHOAL_BEFORE", "none")} if "shoal_before" in names else {}
    for name in names:
        for package in packages[name]:
            try:
                found[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                found[package] = "not installed"
    return found
