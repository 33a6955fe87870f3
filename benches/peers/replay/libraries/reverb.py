"""Reverb: a server, here on the same machine, and clients that speak gRPC with it."""

import os

import reverb
import tensorflow

from . import ALPHA, BETA, Buffer


def table(schema, capacity):
    signature = {name: tensorflow.TensorSpec(shape, dtype) for name, (shape, dtype) in schema.items()}
    return reverb.Table(
        "replay", sampler=reverb.selectors.Prioritized(ALPHA), remover=reverb.selectors.Fifo(), max_size=capacity,
        rate_limiter=reverb.rate_limiters.MinSize(1), signature=signature,
    )


class Reverb(Buffer):
    """Server and client in one process. Every transition is an item of its own; the weights are computed here."""

    label = "Reverb (local server)"
    takes_numpy = False

    def __init__(self, schema, capacity, batch_size):
        self.schema, self.capacity, self.batch_size, self.dataset = schema, capacity, batch_size, None
        self.server = reverb.Server([table(schema, capacity)], port=None)
        self.connect()

    def connect(self):
        self.port = self.server.port
        self.client = self.server.localhost_client()
        self.writer = self.client.trajectory_writer(num_keep_alive_refs=1)

    def native(self, rows):
        return [{name: values[row] for name, values in rows.items()} for row in range(len(rows["reward"]))]

    def add(self, rows):
        writer = self.writer
        for count, row in enumerate(self.native(rows) if isinstance(rows, dict) else rows, 1):
            writer.append(row)
            writer.create_item("replay", 1.0, {name: writer.history[name][-1] for name in row})
            if count % 64 == 0:
                writer.flush(block_until_num_items=32)
        writer.flush()

    def sample(self):
        """Draws through `TrajectoryDataset`, as the documentation advises: threads in the background fetch batches ahead."""
        if self.dataset is None:
            dataset = reverb.TrajectoryDataset.from_table_signature(
                f"localhost:{self.port}", "replay", max_in_flight_samples_per_worker=2 * self.batch_size
            )
            self.dataset = dataset.batch(self.batch_size).as_numpy_iterator()
        drawn = next(self.dataset)
        weights = (drawn.info.probability * drawn.info.table_size) ** -BETA
        return drawn.data, drawn.info.key, weights / weights.max()

    def update(self, drawn, priorities):
        updates = {int(key): float(priority) for key, priority in zip(drawn, priorities)}
        self.client.mutate_priorities("replay", updates=updates)

    def name_of(self, row):
        """Items have keys instead of slots, so batches are searched for the row. A number that is no row is taken as a key."""
        while 0 <= row < 8:
            fields, keys, _ = self.sample()
            for key, value in zip(keys, self.array(fields, "reward")):
                if value == row + 1:
                    return [int(key)]
        return [row]

    def save(self, path):
        self.checkpoint = self.client.checkpoint()

    def load(self, path):
        """A server of its own that finds the checkpoint of the first one."""
        loaded = object.__new__(type(self))
        loaded.schema, loaded.batch_size, loaded.dataset = self.schema, self.batch_size, None
        checkpointer = reverb.checkpointers.DefaultCheckpointer(path=os.path.dirname(self.checkpoint))
        self.close()
        loaded.server = reverb.Server([table(self.schema, self.capacity)], port=None, checkpointer=checkpointer)
        loaded.connect()
        return loaded

    def close(self):
        self.writer.close()
        self.server.stop()


class ReverbShared(Reverb):
    """The server is in the parent; every other process is a client."""

    label = "Reverb (server and clients)"
    start_method = "spawn"

    def __getstate__(self):
        return {"schema": self.schema, "capacity": self.capacity, "batch_size": self.batch_size, "port": self.port}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.dataset, self.client = None, reverb.Client(f"localhost:{self.port}")
        self.writer = self.client.trajectory_writer(num_keep_alive_refs=1)

    def close(self):
        if hasattr(self, "server"):
            super().close()


BUFFERS = {"reverb": Reverb}
SHARED = {"reverb_processes": ReverbShared}
