"""TorchRL's replay buffers with Shoal's sampler, and with a Shoal replay as a whole."""

import multiprocessing
import os
import pickle

import numpy as np
import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")
pytest.importorskip("torchrl", reason="torchrl is not installed")
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.data.replay_buffers.scheduler import LinearScheduler
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueActor
from torchrl.objectives import DQNLoss, HardUpdate

from shoal import NStep, Replay
from shoal.adapters.torchrl import ShoalSampler, ShoalStorage, shoal_replay_buffer

ALPHA, BETA, EPSILON = 0.6, 0.4, 1e-6


def transitions(numbers):
    """Transitions whose number can be told from every value."""
    numbers = torch.as_tensor(numbers)
    return TensorDict(
        {
            "observation": numbers.float()[:, None] * torch.tensor([1.0, -1.0]),
            "action": numbers.to(torch.int64) * 3,
            "next": {
                "observation": (numbers.float()[:, None] + 1) * torch.tensor([1.0, -1.0]),
                "reward": numbers.double()[:, None],
                "terminated": numbers[:, None] % 5 == 4,
            },
        },
        batch_size=[len(numbers)],
    )


def with_sampler(capacity=20, ndim=1):
    return TensorDictReplayBuffer(
        storage=LazyTensorStorage(capacity, ndim=ndim),
        sampler=ShoalSampler(capacity, ALPHA, BETA, EPSILON, seed=1),
    )


def with_storage(capacity=20, **options):
    return shoal_replay_buffer(ShoalStorage(capacity, alpha=ALPHA, beta=BETA, epsilon=EPSILON, seed=1, **options))


MAKERS = pytest.mark.parametrize("make", [with_sampler, with_storage])


def tree(buffer):
    if isinstance(buffer.sampler, ShoalSampler):
        return buffer.sampler.priorities.values()
    return buffer.storage.replay.priorities(np.arange(len(buffer)))


def assert_transitions(sample):
    expected = transitions(sample["next", "reward"].flatten().long())
    for key in expected.keys(include_nested=True, leaves_only=True):
        assert sample[key].dtype == expected[key].dtype
        torch.testing.assert_close(sample[key], expected[key])


@MAKERS
def test_sampled_and_indexed_transitions_are_those_that_were_added(make):
    buffer = make()
    buffer.extend(transitions(range(8)))
    buffer.add(transitions([8])[0])
    buffer.extend(transitions(range(9, 33)))
    assert len(buffer) == 20
    sample = buffer.sample(200)
    assert_transitions(sample)
    assert set(sample["action"].tolist()) == {3 * number for number in range(13, 33)}
    torch.testing.assert_close(buffer[:]["action"].sort().values, 3 * torch.arange(13, 33))
    for index in (0, -1, [2, -2]):
        torch.testing.assert_close(buffer[index]["action"], buffer[:]["action"][index])


@MAKERS
def test_a_sampler_tells_its_exponents_and_size_before_and_after_something_is_added(make):
    buffer = make(20)
    for _ in range(2):
        assert (buffer.sampler.alpha, buffer.sampler.beta, buffer.sampler.max_size) == (ALPHA, BETA, 20)
        buffer.extend(transitions(range(8)))


@MAKERS
def test_write_count_is_the_number_of_added_transitions(make):
    buffer = make(4)
    assert buffer.write_count == buffer.stats()["write_count"] == 0
    buffer.extend(transitions(range(4)))
    buffer.extend(transitions(range(4, 8)))
    buffer.add(transitions([8])[0])
    assert buffer.write_count == buffer.stats()["write_count"] == 9
    buffer.empty()
    assert buffer.write_count == buffer.stats()["write_count"] == 0


@MAKERS
def test_td_errors_reach_the_tree_and_weights_follow_the_formula(make):
    buffer = make()
    buffer.extend(transitions(range(12)))
    np.testing.assert_allclose(tree(buffer)[:12], np.full(12, (1 + EPSILON) ** ALPHA), atol=2e-6)
    sample = buffer.sample(16)
    # An index that occurs twice has the same error both times, as in training.
    errors = sample["next", "reward"].flatten() / 4
    sample["td_error"] = errors
    buffer.update_tensordict_priority(sample)
    expected = np.full(12, (1 + EPSILON) ** ALPHA)
    expected[sample["index"].numpy()] = (errors.numpy() + EPSILON) ** ALPHA
    np.testing.assert_allclose(tree(buffer)[:12], expected, rtol=1e-5, atol=2e-6)
    sample = buffer.sample(64)
    weights = (12 * expected[sample["index"].numpy()] / expected.sum()) ** -BETA
    np.testing.assert_allclose(sample["priority_weight"], weights / weights.max(), rtol=1e-4)
    assert_transitions(sample)


@MAKERS
@pytest.mark.parametrize("is_filled_first", [True, False])
def test_the_schedulers_of_torchrl_anneal_beta(make, is_filled_first):
    buffer = make()
    if is_filled_first:
        buffer.extend(transitions(range(12)))
    scheduler = LinearScheduler(buffer, "beta", 1.0, 4)
    scheduler.step()
    assert buffer.sampler.beta == pytest.approx(BETA + (1 - BETA) / 4)
    for _ in range(3):
        scheduler.step()
    assert buffer.sampler.beta == 1
    if not is_filled_first:
        buffer.extend(transitions(range(12)))
    buffer.update_priority(torch.arange(12), torch.linspace(0.5, 3.0, 12))
    sample = buffer.sample(64)
    weights = 1 / tree(buffer)[sample["index"].numpy()]
    np.testing.assert_allclose(sample["priority_weight"], weights / weights.max(), rtol=1e-4)


@MAKERS
def test_a_beta_that_no_draw_takes_is_refused_when_it_is_given(make):
    buffer = make()
    sampler = type(buffer.sampler)
    arguments = (20, ALPHA) if sampler is ShoalSampler else (buffer.storage,)
    for beta in (1.1, -0.1, float("nan")):
        with pytest.raises(ValueError, match="beta is .*between 0 and 1"):
            sampler(*arguments, beta)
        with pytest.raises(ValueError, match="beta is .*between 0 and 1"):
            buffer.sampler.beta = beta
    assert buffer.sampler.beta == BETA


@MAKERS
def test_an_overwriting_transition_gets_the_largest_priority(make):
    buffer = make(4)
    buffer.extend(transitions(range(4)))
    buffer.update_priority(torch.arange(4), torch.tensor([0.1, 9.0, 0.2, 0.3]))
    buffer.add(transitions([4])[0])
    errors = np.array([9.0, 9.0, 0.2, 0.3])
    np.testing.assert_allclose(tree(buffer), (errors + EPSILON) ** ALPHA, rtol=1e-5, atol=2e-6)


@MAKERS
def test_a_given_priority_is_kept(make):
    buffer = make(4)
    data = transitions(range(3))
    data["td_error"] = torch.tensor([0.5, 2.0, 0.0])
    buffer.extend(data)
    np.testing.assert_allclose(tree(buffer)[:3], (data["td_error"].numpy() + EPSILON) ** ALPHA, rtol=1e-5, atol=2e-6)


@MAKERS
def test_nothing_is_left_after_empty(make):
    buffer = make()
    buffer.extend(transitions(range(12)))
    buffer.empty()
    assert len(buffer) == 0
    buffer.extend(transitions([40]))
    assert set(buffer.sample(8)["action"].tolist()) == {120}


@MAKERS
def test_a_dumped_buffer_is_loaded(make, tmp_path):
    buffer = make()
    buffer.extend(transitions(range(12)))
    buffer.update_priority(torch.arange(12), torch.linspace(0.0, 3.0, 12))
    buffer.sampler.beta = 0.9
    buffer.dumps(tmp_path / "buffer")
    again = make()
    again.extend(transitions([0]))
    again.loads(tmp_path / "buffer")
    np.testing.assert_allclose(tree(again)[:12], tree(buffer)[:12], atol=2e-6)
    assert len(again) == 12 and again.sampler.beta == 0.9
    assert_transitions(again.sample(64))


def test_a_loaded_replay_is_shared_if_the_storage_is(tmp_path):
    buffer = with_storage()
    buffer.extend(transitions(range(12)))
    buffer.dumps(tmp_path / "buffer")
    again = with_storage(shared=True)
    again.loads(tmp_path / "buffer")
    name = again.storage.replay.name
    assert name is not None and len(again) == 12
    again.loads(tmp_path / "buffer")
    assert again.storage.replay.name not in (None, name) and buffer.storage.replay.name is None


def test_the_state_of_a_sampler_is_loaded_into_one_of_the_same_capacity():
    buffer, again = with_sampler(), with_sampler()
    buffer.extend(transitions(range(12)))
    buffer.update_priority(torch.arange(12), torch.linspace(0.0, 3.0, 12))
    again.load_state_dict(buffer.state_dict())
    np.testing.assert_allclose(tree(again), tree(buffer), atol=2e-6)
    with pytest.raises(ValueError, match="max_capacity"):
        ShoalSampler(10, ALPHA, BETA).load_state_dict(buffer.sampler.state_dict())


@pytest.mark.parametrize("seed", [None, 1])
def test_what_was_saved_of_a_sampler_is_read_and_never_run(seed, tmp_path):
    sampler, again = (ShoalSampler(20, ALPHA, BETA, seed=seed) for _ in range(2))
    sampler.update_priority(torch.arange(12), torch.linspace(0.0, 3.0, 12))
    torch.save(sampler.state_dict(), tmp_path / "state.pt")
    again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    np.testing.assert_allclose(again.priorities.values(), sampler.priorities.values(), atol=2e-6)

    class Touches:
        def __reduce__(self):
            return (open, (str(tmp_path / "touched"), "w"))

    sampler.dumps(tmp_path / "saved")
    again.loads(tmp_path / "saved")
    for file in (tmp_path / "saved").iterdir():
        file.write_bytes(pickle.dumps(Touches()))
    with pytest.raises(ValueError):
        again.loads(tmp_path / "saved")
    items = np.array([Touches()], dtype=object)
    np.savez(tmp_path / "saved/sampler.npz", capacity=20, items=items, errors=np.ones(1), beta=0.4)
    with pytest.raises(ValueError, match="allow_pickle"):
        again.loads(tmp_path / "saved")
    assert not (tmp_path / "touched").exists()


def test_storages_of_two_dimensions_are_drawn_from():
    buffer = with_sampler(24, ndim=2)
    data = torch.stack([transitions(range(10 * row, 10 * row + 6)) for row in range(4)])
    buffer.extend(data)
    sample = buffer.sample(200)
    assert_transitions(sample.reshape(-1))
    assert set(sample["action"].flatten().tolist()) == set(data["action"].flatten().tolist())


def test_a_storage_that_chooses_its_slots_cannot_be_written_at_an_index():
    buffer = with_storage()
    with pytest.raises(NotImplementedError, match="ShoalWriter"):
        buffer.storage.set(3, transitions([1])[0])


@pytest.mark.parametrize(
    "write",
    [
        lambda buffer: buffer.set_("action", torch.zeros(8, dtype=torch.int64)),
        lambda buffer: buffer.set_at_("action", torch.zeros(2, dtype=torch.int64), torch.tensor([1, 5])),
        lambda buffer: buffer.update_(TensorDict({"action": torch.zeros(8, dtype=torch.int64)}, batch_size=[8])),
    ],
)
def test_a_change_in_place_is_refused_and_not_silently_lost(write):
    buffer = with_storage()
    buffer.extend(transitions(range(8)))
    with pytest.raises(NotImplementedError, match="set_at_, update_.*nothing was changed"):
        write(buffer)
    assert_transitions(buffer[:])


def test_drawn_rows_are_returned_even_if_they_were_overwritten_since():
    buffer = with_storage(4)
    buffer.extend(transitions(range(4)))
    index, _ = buffer.sampler.sample(buffer.storage, 16)
    buffer.extend(transitions(range(4, 8)))
    assert buffer.storage.get(index)["action"].max() <= 9
    assert buffer.storage.get(index.clone())["action"].min() >= 12
    buffer.update_priority(index, torch.zeros(16))
    np.testing.assert_allclose(tree(buffer), np.full(4, (1 + EPSILON) ** ALPHA), atol=2e-6)


def test_errors_of_an_older_batch_do_not_change_the_transitions_that_overwrote_it():
    buffer = with_storage(4)
    buffer.extend(transitions(range(4)))
    older, _ = buffer.sampler.sample(buffer.storage, 16)
    buffer.sampler.sample(buffer.storage, 8)
    buffer.extend(transitions(range(4, 8)))
    buffer.update_priority(older, torch.zeros(16))
    np.testing.assert_allclose(tree(buffer), np.full(4, (1 + EPSILON) ** ALPHA), atol=2e-6)


def test_a_given_priority_is_kept_if_drawn_transitions_are_overwritten():
    buffer = with_storage(4)
    first = transitions(range(4))
    first["td_error"] = torch.ones(4)
    buffer.extend(first)
    buffer.sample(16)
    data = transitions(range(4, 8))
    data["td_error"] = torch.tensor([0.5, 2.0, 0.0, 1.0])
    buffer.extend(data)
    np.testing.assert_allclose(tree(buffer), (data["td_error"].numpy() + EPSILON) ** ALPHA, rtol=1e-5, atol=2e-6)


def add_from_another_process(name):
    buffer = shoal_replay_buffer(ShoalStorage.of(Replay.open(name)))
    buffer.extend(transitions(range(8, 16)))


def test_a_shared_storage_is_filled_by_another_process():
    buffer = with_storage(shared=True)
    buffer.extend(transitions(range(8)))
    process = multiprocessing.get_context("spawn").Process(
        target=add_from_another_process, args=(buffer.storage.replay.name,)
    )
    process.start()
    process.join(timeout=120)
    assert process.exitcode == 0
    assert len(buffer) == 16
    sample = buffer.sample(400)
    assert_transitions(sample)
    assert set(sample["action"].tolist()) == {3 * number for number in range(16)}


def test_opening_a_replay_changes_none_of_its_priorities():
    buffer = with_storage(shared=True)
    buffer.extend(transitions(range(8)))
    buffer.update_priority(torch.arange(8), torch.linspace(0.0, 3.0, 8))
    before = tree(buffer)
    other = shoal_replay_buffer(ShoalStorage.of(Replay.open(buffer.storage.replay.name)))
    np.testing.assert_array_equal(tree(buffer), before)
    assert_transitions(other.sample(16))


def test_a_replay_without_priorities_is_opened_filled_and_drawn_from():
    buffer = with_storage(shared=True, prioritized=False)
    buffer.extend(transitions(range(8)))
    other = shoal_replay_buffer(ShoalStorage.of(Replay.open(buffer.storage.replay.name)))
    other.add(transitions([8])[0])
    sample = other.sample(200)
    assert_transitions(sample)
    assert set(sample["action"].tolist()) == {3 * number for number in range(9)}
    sample["td_error"] = torch.ones(200)
    other.update_tensordict_priority(sample)


def test_n_step_is_refused_and_left_to_torchrl(tmp_path):
    with pytest.raises(ValueError, match="MultiStep"):
        ShoalStorage(20, n_step=NStep(3))
    fields = {"next/reward": ((1,), "float64"), "next/terminated": ((1,), "bool")}
    steps = NStep(3, reward="next/reward", next_fields=[], terminated="next/terminated", truncated=None)
    replay = Replay(20, fields, n_step=steps)
    with pytest.raises(ValueError, match="MultiStep"):
        ShoalStorage.of(replay)
    replay.save(tmp_path / "replay")
    with pytest.raises(ValueError, match="MultiStep"):
        ShoalStorage(20).loads(tmp_path)


def add_to(buffer):
    buffer.extend(transitions(range(8, 16)))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_a_shared_buffer_that_was_drawn_from_goes_to_another_process(method):
    buffer = with_storage(shared=True)
    buffer.extend(transitions(range(8)))
    buffer.sample(16)
    process = multiprocessing.get_context(method).Process(target=add_to, args=(buffer,))
    process.start()
    process.join(timeout=120)
    assert process.exitcode == 0
    assert set(buffer.sample(400)["action"].tolist()) == {3 * number for number in range(16)}
    again = pickle.loads(pickle.dumps(buffer))
    assert again.storage.replay.name == buffer.storage.replay.name
    assert_transitions(again.sample(16))


def test_a_storage_that_is_not_shared_yet_goes_to_no_other_process():
    buffer = with_storage(shared=True)
    with pytest.raises(RuntimeError, match="Add something before"):
        pickle.dumps(buffer)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(RuntimeError, match="Add something before"):
                buffer.extend(transitions(range(8)))
            os._exit(0)
        except BaseException:  # noqa: BLE001 (told to the parent by the exit status)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    buffer.extend(transitions(range(8)))
    assert len(buffer) == 8


def test_a_private_storage_that_holds_something_says_why_it_is_not_sent():
    buffer = with_storage()
    assert len(pickle.loads(pickle.dumps(buffer))) == 0
    buffer.extend(transitions(range(8)))
    with pytest.raises(TypeError, match="shared=True"):
        pickle.dumps(buffer)


@pytest.mark.parametrize("key", ["speed/wind", ("next", "speed/wind")])
def test_a_key_with_the_separator_of_nested_keys_is_refused(key):
    buffer = with_storage()
    data = transitions(range(8))
    data[key] = torch.zeros(8)
    with pytest.raises(ValueError, match="'speed/wind'.*'speed', 'wind'.*another name"):
        buffer.extend(data)
    assert len(buffer) == 0


@MAKERS
def test_dqn_learns_cartpole(make):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    env = TransformedEnv(GymEnv("CartPole-v1", categorical_action_encoding=True), StepCounter())
    env.set_seed(1)
    actor = QValueActor(MLP(4, 2, num_cells=[128, 128]), spec=env.action_spec, action_space="categorical")
    explorer = EGreedyModule(env.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=4000)
    loss = DQNLoss(actor, action_space="categorical", delay_value=True)
    loss.make_value_estimator(gamma=0.99)
    target = HardUpdate(loss, value_network_update_interval=100)
    optimizer = torch.optim.Adam(loss.parameters(), lr=1e-3)
    buffer = make(20_000)

    policy = TensorDictModule(actor, actor.in_keys, actor.out_keys)
    lengths = []
    data = env.reset()
    for step in range(12_000):
        with torch.no_grad():
            data = env.step(explorer(policy(data)))
        explorer.step()
        buffer.add(
            data.select(
                "observation",
                "action",
                ("next", "observation"),
                ("next", "reward"),
                ("next", "done"),
                ("next", "terminated"),
            )
        )
        if data["next", "done"].item():
            lengths.append(data["next", "step_count"].item())
            data = env.reset()
        else:
            data = data["next"].exclude("reward")
        if step > 500 and step % 2 == 0:
            sample = buffer.sample(64)
            value = loss(sample)["loss"]
            optimizer.zero_grad()
            value.backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 10.0)
            optimizer.step()
            target.step()
            buffer.update_tensordict_priority(sample)
            if len(lengths) >= 10 and np.mean(lengths[-10:]) > 150:
                break
    # A random policy returns about 22.
    assert np.mean(lengths[-10:]) > 100
