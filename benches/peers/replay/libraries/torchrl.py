"""TorchRL: a tree in C++ over PyTorch tensors, storages of several kinds."""

import os
import shutil
import tempfile

import children
import numpy
import torch
from tensordict import TensorDict
from torchrl._torchrl import SumSegmentTreeFp32
from torchrl.data import LazyMemmapStorage, LazyTensorStorage, TensorDictPrioritizedReplayBuffer

from . import ALPHA, BETA, Buffer, Tree

torch.set_num_threads(1)


class CppTree(Tree):
    """float32, binary."""

    label = "TorchRL"

    def __init__(self, capacity):
        self.tree, self.capacity = SumSegmentTreeFp32(capacity), capacity
        self.tree[torch.arange(capacity)] = torch.full((capacity,), 0.5)

    def native(self, indices, priorities):
        return torch.from_numpy(indices), torch.from_numpy(priorities)

    def native_targets(self, fractions):
        return torch.from_numpy((fractions * self.total() * 0.999).astype(numpy.float32))

    def update(self, indices_and_priorities):
        indices, priorities = indices_and_priorities
        self.tree[indices] = priorities

    def find(self, targets):
        self.tree.scan_lower_bound(targets)

    def total(self):
        return self.tree.query(0, self.capacity)

    def leaves(self):
        return self.tree[torch.arange(self.capacity)]


class TorchRL(Buffer):
    label = "TorchRL"
    takes_numpy = False
    options = {}

    def __init__(self, schema, capacity, batch_size):
        self.schema, self.capacity, self.batch_size = schema, capacity, batch_size
        self.buffer = TensorDictPrioritizedReplayBuffer(
            alpha=ALPHA, beta=BETA, storage=self.storage(), batch_size=batch_size, **self.options,
        )

    def storage(self):
        return LazyTensorStorage(self.capacity)

    def native(self, rows):
        return TensorDict({name: torch.from_numpy(values) for name, values in rows.items()}, [len(rows["reward"])])

    def native_priorities(self, priorities):
        return torch.from_numpy(priorities)

    def native_indices(self, indices):
        return torch.from_numpy(indices)

    def add(self, rows):
        self.buffer.extend(self.native(rows) if isinstance(rows, dict) else rows)

    def sample(self):
        batch = self.buffer.sample()
        return batch, batch["index"], batch["priority_weight"]

    def update(self, drawn, priorities):
        self.buffer.update_priority(drawn, priorities)

    def priorities(self):
        tree = self.buffer.sampler._sum_tree
        return numpy.asarray(tree[torch.arange(self.capacity)])

    def total(self):
        return self.buffer.sampler._sum_tree.query(0, self.capacity)

    def save(self, path):
        self.buffer.dumps(path)

    def load(self, path):
        loaded = type(self)(self.schema, self.capacity, self.batch_size)
        loaded.buffer.loads(path)
        return loaded


class TorchRLShared(TorchRL):
    """Writers extend a memory-mapped storage under one lock; only the process that made it may draw prioritized batches."""

    label = "TorchRL, `shared=True`"
    start_method = "spawn"
    most_samplers, samples_in_parent = 1, True
    options = {"sync": False, "shared": True}

    def storage(self):
        self.folder = tempfile.mkdtemp(dir=os.environ.get(children.FOLDER, "/dev/shm"))
        return LazyMemmapStorage(self.capacity, scratch_dir=self.folder)

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)


def constructor(**always):
    return lambda **options: TensorDictPrioritizedReplayBuffer(
        alpha=ALPHA, beta=BETA, storage=LazyTensorStorage(8), batch_size=4, **always, **options
    )


CONSTRUCTORS = {
    "TensorDictPrioritizedReplayBuffer": constructor(),
    "TensorDictPrioritizedReplayBuffer(shared=True)": constructor(sync=False, shared=True),
}
TREES = {"torchrl": CppTree}
BUFFERS = {"torchrl": TorchRL}
SHARED = {"torchrl_shared": TorchRLShared}
