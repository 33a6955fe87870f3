"""Saved policies in Python: the same actions as the program's, in NumPy, PyTorch and ONNX."""

import copy
import pickle
import shutil
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import numpy as np
import pytest
from command_line import ENVIRONMENT

import shoal
import shoal.policies

# Changes of presets. What follows a comma only tells the names apart.
RUNS = {
    "cartpole_dqn": {"network": {"dueling": True}},
    "cartpole_ppo": {"algorithm": {"normalise_observations": True}},
    "pendulum_ppo": {},
    "pendulum_sac": {"learner": {"batch_size": 16}},
    "pendulum_td3": {"learner": {"batch_size": 16}},
    "catch_dqn": {},
    "catch_appo, normalised and stacked": {
        "algorithm": {"normalise_observations": True},
        "environment": {"frame_stack": 3},
    },
    "pendulum_sac, stacked": {"learner": {"batch_size": 16}, "environment": {"frame_stack": 4}},
}


def short_run(name):
    return shoal.train(
        name.partition(",")[0],
        run={"stop_env_steps": 2000, "stop_eval_return": "none"},
        evaluator={"enabled": False},
        quiet=True,
        **RUNS[name],
    )


def test_a_policy_knows_how_many_frames_it_sees(folder):
    seen = {name: short_run(name).load() for name in RUNS if name.endswith("stacked")}
    assert [(policy.stack, policy.observation_shape) for policy in seen.values()] == [(3, (3, 10, 5)), (4, (4, 3))]
    assert short_run("cartpole_dqn").load().stack == 1


def test_the_last_weights_of_a_run_under_way_are_those_of_its_newest_checkpoint(folder):
    run = short_run("cartpole_dqn")
    last, best = (run.folder / f"weights/{name}.safetensors" for name in ("last", "best"))
    saved = run.load("last")
    last.rename(best)
    policy = run.load("last")
    rows = np.random.default_rng(1).uniform(-1, 1, (50, 4)).astype(np.float32)
    assert policy.path.parent.name == "checkpoints" and policy.updates == saved.updates
    assert (policy(rows) == saved(rows)).all() and (copy.copy(policy)(rows) == saved(rows)).all()
    # As its run removes it once there are others.
    shutil.rmtree(policy.path)
    with pytest.raises(shoal.PolicyError, match="is a checkpoint"):
        policy.to_torch()


def test_an_image_whose_channels_come_last_is_refused_with_the_next_step():
    policy = object.__new__(shoal.Policy)
    policy.observation_shape, policy.observation_dtype = (3, 30, 40), np.dtype(np.uint8)
    for shape in [(30, 40, 3), (2, 30, 40, 3)]:
        with pytest.raises(ValueError, match="put the channels first with numpy.moveaxis"):
            policy(np.zeros(shape, np.uint8))
    with pytest.raises(ValueError, match=r"not \(30, 41, 3\)$"):
        policy(np.zeros((30, 41, 3), np.uint8))


def test_weights_that_were_moved_to_another_disk_are_played_as_their_run_did_through_the_link_to_them(folder):
    file = short_run("pendulum_sac, stacked").load("last").path
    file.rename(folder / "moved.safetensors")
    file.symlink_to(folder / "moved.safetensors")
    assert shoal.load(file).stack == 4


def assert_modules_choose_the_same(torch, policy, tmp_path):
    random = np.random.default_rng(1)
    observations = random.standard_normal((1000, *policy.observation_shape))
    if policy.observation_dtype == np.uint8:
        observations = random.integers(0, 256, observations.shape)
    observations = observations.astype(policy.observation_dtype)
    expected = policy(observations)

    def check(actions, tolerance=1e-5):
        if policy.actions is None:
            np.testing.assert_allclose(actions, expected, atol=tolerance)
        else:
            # Rounding decides between two actions of the same value.
            assert (actions != expected).mean() <= 0.002

    check(policy.to_torch()(torch.from_numpy(observations)).numpy())
    policy.to_torchscript(tmp_path / "policy.pt")
    check(torch.jit.load(tmp_path / "policy.pt")(torch.from_numpy(observations)).numpy())
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    policy.to_onnx(tmp_path / "policy.onnx")
    session = runtime.InferenceSession(tmp_path / "policy.onnx")
    check(session.run(None, {"observations": observations})[0])


@pytest.mark.parametrize("name", RUNS)
def test_modules_of_pytorch_choose_the_same_actions(folder, name, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_modules_choose_the_same(torch, short_run(name).load(), tmp_path)


@pytest.mark.parametrize("name", ["cartpole_ppo", "pendulum_ppo", "catch_dqn"])
def test_modules_of_pytorch_are_as_the_file_is_whatever_a_session_has_made_its_default(folder, name, tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    policy = short_run(name).load()
    # Stands for a GPU.
    with torch.device("meta"):
        module = policy.to_torch()
    assert {tensor.device.type for tensor in module.state_dict().values()} == {"cpu"}
    torch.set_default_dtype(torch.float64)
    try:
        assert_modules_choose_the_same(torch, policy, tmp_path)
    finally:
        torch.set_default_dtype(torch.float32)


def test_one_observation_and_rows_of_them_give_the_same_actions(folder):
    for preset in ("cartpole_dqn", "pendulum_sac", "pendulum_ppo"):
        policy = short_run(preset).load("last")
        # So far from all observations of training that the means of PPO lie outside the bounds. Those of SAC would come
        # so near to the bounds that nothing is drawn.
        scale = 50 if preset == "pendulum_ppo" else 1
        rows = scale * np.random.default_rng(1).standard_normal((5, *policy.observation_shape))
        chosen = policy(rows)
        assert chosen.shape == ((5,) if policy.actions else (5, len(policy.low)))
        # The sums of one row are rounded differently from those of several rows.
        np.testing.assert_allclose([policy(row) for row in rows], chosen, atol=1e-5)
        explored = [policy(rows, explore=True) for _ in range(200)]
        assert any((other != chosen).any() for other in explored)
        if policy.actions is None:
            assert all(((actions >= policy.low) & (actions <= policy.high)).all() for actions in [chosen, *explored])


def test_exploration_is_that_of_the_algorithm_when_the_policy_was_saved(folder):
    def explored(preset, **algorithm):
        policy = shoal.train(
            preset,
            run={"stop_env_steps": 2000, "stop_eval_return": "none"},
            evaluator={"enabled": False},
            # It learns next to nothing: the actions stay away from the bounds, where noise is cut off.
            learner={"learning_rate": 1e-6},
            algorithm=algorithm,
            quiet=True,
        ).load("last")
        rows = np.random.default_rng(1).standard_normal((2000, *policy.observation_shape))
        return policy, policy(rows), policy(rows, explore=True)

    _, best, drawn = explored("cartpole_dqn", epsilon_start=0.2, epsilon_end=0.2)
    # Half of the random actions are the best one as well.
    assert 0.86 < (best == drawn).mean() < 0.94
    policy, best, drawn = explored("pendulum_td3", exploration_noise_std=0.05)
    inside = np.abs(best) < 0.7 * policy.high
    assert inside.sum() > 100
    assert 0.04 < ((drawn - best) / policy.high)[inside].std() < 0.06


def test_observations_that_do_not_fit_are_refused(folder):
    policy = short_run("cartpole_dqn").load()
    with pytest.raises(ValueError, match=r"\(4,\), with or without"):
        policy(np.zeros(5))
    with pytest.raises(ValueError, match="float32, not complex128"):
        policy(np.zeros(4, complex))
    with pytest.raises(ValueError, match="best"):
        shoal.load(policy.path, "newest")
    policy = short_run("catch_dqn").load()
    seen = np.zeros(policy.observation_shape, np.uint16)
    assert policy(seen) == policy(seen.astype(np.uint8))
    # 300 as a byte would be 44.
    with pytest.raises(ValueError, match="do not fit uint8"):
        policy(seen + np.uint16(300))
    with pytest.raises(ValueError, match="uint8, not int64"):
        policy(seen.astype(np.int64))


def test_a_good_policy_is_good_wherever_the_environment_is_stepped(folder):
    run = shoal.train("cartpole_dqn", quiet=True)
    policy = run.load()
    mine = shoal.evaluate(policy, episodes=20)
    gymnasiums = shoal.evaluate(policy, gymnasium.make("CartPole-v1"), episodes=20)
    assert len(mine.returns) == 20 and mine.return_mean > 400 and gymnasiums.return_mean > 400
    assert mine.ci95[0] <= mine.return_mean <= mine.ci95[1]
    with pytest.raises(shoal.PolicyError, match="Acrobot-v1"):
        shoal.evaluate(policy, "Acrobot-v1")


def test_weights_that_a_run_replaces_meanwhile_are_refused_only_where_the_caller_had_loaded_others(folder, monkeypatch):
    run = short_run("cartpole_dqn")
    policy = run.load()
    played = {"updates": policy.updates + 1, "returns": [1.0, 2.0], "cut_off": 0}
    monkeypatch.setattr(shoal.policies, "answer", lambda *_: played)
    assert shoal.evaluate(run).returns == shoal.evaluate(run.folder).returns == [1.0, 2.0]
    with pytest.raises(shoal.PolicyError, match="load them again"):
        shoal.evaluate(policy)


def test_a_file_that_was_replaced_meanwhile_makes_no_module(folder):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    policy = short_run("cartpole_dqn").load("last")
    newer = short_run("cartpole_ppo").load("last")
    assert policy.updates != newer.updates
    policy.path.write_bytes(newer.path.read_bytes())
    with pytest.raises(shoal.PolicyError, match=f"of {newer.updates} updates: load them again"):
        policy.to_torch()
    assert isinstance(newer.to_torch(), torch.nn.Module)


def test_a_module_of_an_algorithm_that_is_not_known_is_made_only_if_the_file_says_what_its_outputs_are(folder):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from shoal.torch_policy import TorchPolicy

    def of_another_algorithm(policy):
        content, name = policy.path.read_bytes(), f'algorithm\\":\\"{policy.algorithm}\\"'.encode()
        assert content.count(name) == 1
        path = folder / "another.safetensors"
        path.write_bytes(content.replace(name, b'algorithm\\":\\"own\\"'))
        return TorchPolicy(path, policy.low, policy.high)

    policy = short_run("cartpole_dqn").load("last")
    rows = torch.from_numpy(np.random.default_rng(1).standard_normal((100, 4), np.float32))
    assert torch.equal(of_another_algorithm(policy)(rows), policy.to_torch()(rows))
    with pytest.raises(shoal.PolicyError, match="nothing says how the outputs of own become actions"):
        of_another_algorithm(short_run("pendulum_td3").load("last"))


def test_a_damaged_file_is_refused_by_its_name(folder):
    (folder / "policy.safetensors").write_bytes(b"nothing")
    with pytest.raises(shoal.PolicyError, match=r"policy\.safetensors"):
        shoal.load("policy.safetensors")
    with pytest.raises(shoal.PolicyError, match="absent"):
        shoal.load("absent")


def test_a_policy_is_loaded_where_its_environment_is_not(folder):
    (folder / "task.py").write_text(ENVIRONMENT)
    run = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 500}, quiet=True)
    (folder / "task.py").unlink()
    (folder / "moved").mkdir()
    moved = shutil.copy(run.folder / "weights/last.safetensors", folder / "moved")
    rows = np.random.default_rng(1).standard_normal((20, 2))
    chosen = [shoal.load(path, "last")(rows) for path in (run.folder, moved)]
    np.testing.assert_array_equal(*chosen)
    policy = shoal.load(moved)
    assert (policy.observation_shape, policy.observation_dtype, policy.stack, policy.actions) == ((2,), np.float32, 1, 2)
    with pytest.raises(shoal.PolicyError, match="no module task"):
        shoal.evaluate(policy, "python:task:Corridor", episodes=1)
    older = folder / "older.safetensors"
    older.write_bytes((folder / "moved/last.safetensors").read_bytes().replace(b'spaces\\"', b'unsaid\\"'))
    with pytest.raises(shoal.PolicyError, match="older.safetensors does not say what .* code that a file of weights names"):
        shoal.load(older)


def test_code_that_weights_alone_name_does_not_run_unless_the_user_names_it(folder):
    (folder / "task.py").write_text(ENVIRONMENT)
    run = shoal.train("python:task:Corridor", algorithm="dqn", run={"stop_env_steps": 500}, quiet=True)
    alone = shutil.copy(run.folder / "weights/last.safetensors", folder / "alone.safetensors")
    older = folder / "older.safetensors"
    older.write_bytes((folder / "alone.safetensors").read_bytes().replace(b'spaces\\"', b'unsaid\\"'))
    with (folder / "task.py").open("a") as task:
        task.write("\nopen('touched', 'w').close()\n")
    for refused in (lambda: shoal.load(older), lambda: shoal.evaluate(alone, episodes=1)):
        with pytest.raises(shoal.PolicyError, match="--environment python:task:Corridor"):
            refused()
    assert not (folder / "touched").exists()
    assert len(shoal.evaluate(alone, "python:task:Corridor", episodes=1).returns) == 1
    assert (folder / "touched").exists()


# Settings of algorithms.
ALGORITHMS = {
    "dqn": {},
    "ppo": {"algorithm": {"name": "ppo", "normalise_observations": True}},
    "sac": {"learner": {"batch_size": 16}},
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_modules_of_pytorch_take_observations_that_are_single_numbers(folder, algorithm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    task = (
        ENVIRONMENT.replace("(2,)", "()")
        .replace("numpy.zeros(2, numpy.float32)", "numpy.float32(0)")
        .replace("numpy.full(2, self.at / 10, numpy.float32), float(action)", "numpy.float32(self.at / 10), 1.0")
    )
    if algorithm == "sac":
        task = task.replace("Discrete(2)", "Box(-1, 1, (1,), numpy.float32)")
    (folder / "task.py").write_text(task)
    policy = shoal.train(
        "python:task:Corridor",
        run={"stop_env_steps": 2000},
        evaluator={"enabled": False},
        quiet=True,
        **{"algorithm": algorithm, **ALGORITHMS[algorithm]},
    ).load("last")
    assert policy.observation_shape == ()
    observations = np.random.default_rng(1).uniform(-1, 1, 100).astype(np.float32)
    expected = policy(observations)
    np.testing.assert_allclose(policy.to_torch()(torch.from_numpy(observations)).numpy(), expected, atol=1e-5)
    policy.to_torchscript("policy.pt")
    np.testing.assert_allclose(torch.jit.load("policy.pt")(torch.from_numpy(observations)).numpy(), expected, atol=1e-5)
    pytest.importorskip("onnx", reason="onnx is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    policy.to_onnx("policy.onnx")
    played = runtime.InferenceSession("policy.onnx").run(None, {"observations": observations})[0]
    np.testing.assert_allclose(played, expected, atol=1e-5)


def test_a_copy_of_a_policy_is_loaded_from_its_file(folder):
    policy = shoal.load(short_run("cartpole_dqn").folder, "last", seed=5)
    rows = np.random.default_rng(1).standard_normal((200, *policy.observation_shape))
    copies = [pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)]
    drawn = policy(rows, explore=True)
    for other in copies:
        np.testing.assert_array_equal(other(rows, explore=True), drawn)
        np.testing.assert_array_equal(other(rows), policy(rows))
        assert (other.path, other.updates) == (policy.path, policy.updates)
    sent = pickle.dumps(policy)
    newer = shoal.train(
        "cartpole_dqn",
        run={"stop_env_steps": 6000, "stop_eval_return": "none"},
        evaluator={"enabled": False},
        quiet=True,
        **RUNS["cartpole_dqn"],
    ).load("last")
    assert policy.updates != newer.updates
    policy.path.write_bytes(newer.path.read_bytes())
    with pytest.raises(shoal.PolicyError, match=f"of {newer.updates} updates: load them again"):
        pickle.loads(sent)


def test_other_threads_run_while_a_policy_computes(folder):
    policy = short_run("pendulum_sac").load("last")
    rows = np.zeros((20_000, *policy.observation_shape), np.float32)
    steps, has_ended = 0, threading.Event()

    def step():
        nonlocal steps
        while not has_ended.is_set():
            steps += 1
            time.sleep(0)

    def runs_meanwhile():
        before = steps
        policy._native.choose(rows.reshape(-1), False)
        return steps > before

    # So long that this thread gives the interpreter's lock away by itself or not at all.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    other = threading.Thread(target=step)
    try:
        other.start()
        assert any(runs_meanwhile() for _ in range(100))
    finally:
        sys.setswitchinterval(interval)
        has_ended.set()
        other.join()


def test_no_two_calls_draw_the_same_however_they_overlap(folder):
    policy = short_run("pendulum_sac").load("last")
    rows = np.zeros((2000, *policy.observation_shape), np.float32)
    with ThreadPoolExecutor(4) as threads:
        drawn = list(threads.map(lambda _: policy(rows, explore=True).tobytes(), range(64)))
    assert len(set(drawn)) == 64


class Endless(gymnasium.Env):
    """Never ends an episode. `is_open` counts the environments of this class that are not closed."""

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    is_open = 0

    def __init__(self):
        Endless.is_open += 1

    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.float32), {}

    def step(self, action):
        return np.zeros(4, np.float32), 1.0, False, False, {}

    def close(self):
        Endless.is_open -= 1


class Ending(Endless):
    """Ends each episode with its first step."""

    def step(self, action):
        return np.zeros(4, np.float32), 1.0, True, False, {}


def test_an_episode_that_does_not_end_is_cut_off_and_its_return_until_then_counts(folder, monkeypatch):
    run = shoal.train(
        "cartpole_dqn",
        run={"stop_env_steps": 2000, "stop_eval_return": "none"},
        evaluator={"enabled": False, "episode_limit_steps": 5},
        quiet=True,
    )
    # No episode of CartPole is over in five steps, however it is played.
    played = shoal.evaluate(run, episodes=3)
    assert (played.returns, played.cut_off) == ([5.0, 5.0, 5.0], 3)
    policy = run.load("last")
    assert shoal.policies._EPISODE_LIMIT_STEPS == 100_000, "the default of evaluator.episode_limit_steps"
    monkeypatch.setattr(shoal.policies, "_EPISODE_LIMIT_STEPS", 50)
    played = shoal.evaluate(policy, Endless(), episodes=2)
    assert (played.returns, played.cut_off) == ([50.0, 50.0], 2)
    assert shoal.evaluate(policy, Ending, episodes=2).cut_off == 0


class Pixels(gymnasium.Env):
    """Shows images of bytes as numbers of another type."""

    observation_space = gymnasium.spaces.Box(0, 255, (10, 5), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def __init__(self, dtype, brightest=255):
        self.image = (brightest * np.eye(10, 5)).astype(dtype)

    def reset(self, *, seed=None, options=None):
        return self.image, {}

    def step(self, action):
        return self.image, 1.0, True, False, {}


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float64", "bool"])
def test_images_of_bytes_are_played_in_whatever_type_a_run_has_taken_them(folder, dtype):
    policy = shoal.train(
        Pixels,
        algorithm="dqn",
        environment={"keyword_arguments": {"dtype": dtype}},
        run={"stop_env_steps": 500},
        evaluator={"enabled": False},
        quiet=True,
    ).load("last")
    assert policy.observation_dtype == np.uint8
    assert shoal.evaluate(policy, Pixels(dtype), episodes=2).returns == [1.0, 1.0]
    for brightest in (256.0, -1.0, 0.5, np.nan):
        with pytest.raises(ValueError, match=f"value {brightest}, and the observation space whole numbers"):
            shoal.evaluate(policy, Pixels("float64", brightest), episodes=1)


class Moving(gymnasium.Env):
    """A dot moves through an image whose channels come last. The return tells in which steps the action was right."""

    observation_space = gymnasium.spaces.Box(0, 255, (6, 5, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return self.image(), {}

    def step(self, action):
        self.at += 1
        return self.image(), float(action == self.at % 3) / 2**self.at, self.at == 10, False, {}

    def image(self):
        image = np.zeros((6, 5, 3), np.uint8)
        image[self.at % 6, self.at % 5, self.at % 3] = 255
        return image


def test_frames_are_stacked_wherever_the_environment_is_stepped(folder):
    policy = shoal.train(
        Moving,
        algorithm="dqn",
        environment={"frame_stack": 2},
        run={"stop_env_steps": 2000},
        evaluator={"enabled": False},
        quiet=True,
    ).load("last")
    assert policy.observation_shape == (6, 6, 5)
    assert shoal.evaluate(policy, Moving, episodes=2).returns == shoal.evaluate(policy, episodes=2).returns
    run = short_run("pendulum_sac, stacked")
    assert len(shoal.evaluate(run, gymnasium.make("Pendulum-v1"), episodes=2).returns) == 2


class Counted(gymnasium.Env):
    """Fills its observation, always the same array, with the number of the step."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape, dtype=np.float32):
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, dtype)
        self.shown = np.zeros(shape, dtype)

    def reset(self, *, seed=None, options=None):
        self.shown[...] = 1
        return self.shown, {}

    def step(self, action):
        self.shown += 1
        return self.shown, 0.0, bool((self.shown == 4).all()), False, {}


def named(environment):
    """Shows the observation in a dictionary."""
    space = gymnasium.spaces.Dict({"all": environment.observation_space})
    return gymnasium.wrappers.TransformObservation(environment, lambda shown: {"all": shown}, space)


@pytest.mark.parametrize(
    ("environment", "stack", "shape"),
    [
        (Counted((3,)), 2, (2, 3)),
        (Counted(()), 2, (2,)),
        (named(Counted((3,))), 2, (2, 3)),
        (Counted((5, 4), np.uint8), 2, (2, 5, 4)),
        (Counted((3, 5, 4), np.uint8), 2, (6, 5, 4)),
        (Counted((5, 4, 3), np.uint8), 2, (6, 5, 4)),
        # It shows three of the six frames at once by itself.
        (Counted((3, 5, 4), np.uint8), 6, (6, 5, 4)),
    ],
)
def test_the_last_observations_are_shown_the_oldest_first_after_copies_of_the_first(environment, stack, shape):
    class Recording:
        observation_shape, observation_dtype = shape, np.dtype(np.float32)

        def __init__(self):
            self.stack, self.seen = stack, []

        def __call__(self, observation):
            assert observation.shape == shape
            self.seen.append(observation.reshape(2, -1))
            return 0

    policy = Recording()
    assert shoal.policies._played_in(policy, environment, 1, 1) == ([0.0], 0)
    assert [[np.unique(frame).tolist() for frame in seen] for seen in policy.seen] == [
        [[1], [1]],
        [[1], [2]],
        [[2], [3]],
    ]


@pytest.mark.parametrize(
    ("action", "space"),
    [
        (2, gymnasium.spaces.Discrete(3, start=-1)),
        (np.float32([0.4]), gymnasium.spaces.Box(-0.4, 0.4, (), np.float64)),
        (np.float32([-0.4, 0.4]), gymnasium.spaces.Box(-0.4, 0.4, (2, 1), np.float64)),
    ],
)
def test_an_environment_is_played_with_actions_of_its_space_as_in_a_run(action, space):
    played = shoal.policies._for_space(action, space)
    assert space.contains(played) and type(played) is type(space.sample()) and played.dtype == space.dtype


def test_an_environment_is_made_by_a_class_or_function(folder, monkeypatch):
    policy = short_run("cartpole_dqn").load("last")
    monkeypatch.setattr(shoal.policies, "_EPISODE_LIMIT_STEPS", 5)
    monkeypatch.setattr(Endless, "is_open", 0)
    for make in (Endless, lambda: gymnasium.wrappers.TimeLimit(Endless(), 3)):
        assert len(set(shoal.evaluate(policy, make, episodes=2).returns)) == 1
        assert Endless.is_open == 0
