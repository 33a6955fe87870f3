"""One file per library, each with up to three adapters: its tree, its buffer, and its buffer of several processes.

An adapter turns what the bench wants into the library's own calls, in the way its documentation shows. The containers that a
user would have ready beforehand are made by `native` and the other `native_…` methods, which are not timed.
"""

import importlib
import os

# The libraries read these variables when they are loaded. Each library gets one thread: processes.py measures parallel work.
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
        """The sum at the root, or None if the library does not show it."""
        return None

    def leaves(self):
        """All priorities, if there is a `total`."""
        raise NotImplementedError


class Buffer:
    """A replay of `capacity` rows of `schema` that draws batches of `batch_size`."""

    label = ""
    prioritized = True
    # Rows per call of `add` while the buffer is filled.
    fill_rows = 1024
    # Whether the library takes NumPy arrays as they are. If not, adding them without `native` is measured as well.
    takes_numpy = True
    # How the other processes of a bench are started.
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
        """How `update` names the row in slot `row`."""
        import numpy

        return numpy.array([row])

    def drawn_row(self, row):
        """What a batch in which `row` was drawn passes to `update`: slots, unless the library has better names."""
        return self.native_indices(self.name_of(row))

    def size_of(self, drawn):
        """How many priorities `update` takes for what was drawn."""
        return len(drawn)

    def add(self, rows):
        raise NotImplementedError

    def sample(self):
        """A batch: (its fields, what `update` needs to name its rows, its importance weights)."""
        raise NotImplementedError

    def update(self, drawn, priorities):
        raise NotImplementedError

    def priorities(self):
        """The priorities in the tree, or None if the library does not show them."""
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
        """A buffer like this one, read from a file."""
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
        "shoal": ["shoal"], "shoal_before": [], "cpprb": ["cpprb"], "tianshou": ["tianshou", "numba"],
        "torchrl": ["torchrl", "tensordict", "torch"],
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
