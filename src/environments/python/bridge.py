"""A Gymnasium environment as an actor steps it.

Observations are in a flat buffer of float32 or bytes, actions in one of float32. These functions run inside actors and,
before a run starts, in a process of their own that only describes the environment.
"""

import contextlib
import difflib
import functools
import importlib
import importlib.util
import json
import math
import numbers
import os
import reprlib
import sys
from importlib import metadata

from shoal_faults import Refused, install_command, package_of, report  # noqa: F401

# The simulators on whose version results depend, by module.
SIMULATORS = {"mujoco": "mujoco", "Box2D": "Box2D", "ale_py": "ale-py", "jax": "jax", "pybullet": "pybullet"}

# MuJoCo's renderers that need no display, the faster one first, and the library that each of them loads.
RENDERERS = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}

# How a constructor or function says that it takes no argument `render_mode`, or hands on one of its own.
TAKES_NO_RENDER_MODE = ("argument 'render_mode'", "() takes no ")

# Gymnasium's wrappers that scale by what they have seen themselves, and the keys with which a run scales alike everywhere.
SCALING = {"NormalizeObservation": "normalise_observations", "NormalizeReward": "normalise_rewards"}

# The most combinations of a `MultiDiscrete` or `MultiBinary`: 12 switches. Each is an action of its own, which is learned only by
# trying it, and has its own output of the network: a million weights behind a layer of 256 units.
MOST_COMBINATIONS = 4_096


def make(id, keyword_arguments, search_folders, drawn=False):
    """The environment with this id. Its observation space is one box."""
    kind, _, name = id.partition(":")
    keywords = json.loads(keyword_arguments)
    if drawn:
        choose_renderer()
    drawn = drawn and "render_mode" not in keywords
    gymnasium = importlib.import_module("gymnasium")
    # The process that described the environment (`shoal_probe`) has already shown Gymnasium's warnings.
    if "shoal_probe" not in sys.modules:
        gymnasium.logger.min_level = gymnasium.logger.ERROR
    if kind == "gymnasium":
        module_name, _, name = name.rpartition(":")
        if module_name:
            # The import registers the environment. Gymnasium could import the module, but does not know the folders.
            imported(module_name, search_folders)
        if name.startswith("ALE/"):
            gymnasium.register_envs(importlib.import_module("ale_py"))
        keywords.setdefault("disable_env_checker", True)
        try:
            with without_warnings_of_models(gymnasium, name):
                environment = made(lambda **more: gymnasium.make(name, **more, **keywords), creator(gymnasium, name), drawn)
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv) as error:
            near = difflib.get_close_matches(name, gymnasium.registry, n=4)
            advice = f"names like it: {', '.join(sorted(near, reverse=True))}" if near else ""
            if not near and not module_name:
                advice = f"if a module of yours registers it, write gymnasium:MODULE:{name}"
            raise Refused(str(error), advice) from None
    else:
        maker = load(name, search_folders)
        environment = made(lambda **more: maker(**more, **keywords), maker, drawn)
        wanted = ("observation_space", "action_space", "reset", "step")
        lacks = [attribute for attribute in wanted if not hasattr(environment, attribute)]
        if lacks:
            raise Refused(f"{name} makes a {type(environment).__name__}, which has no {' and no '.join(lacks)}")
    return as_one_box(gymnasium, environment)


def choose_renderer():
    """Has MuJoCo draw without a display if there is none, since Gymnasium would take GLFW, which needs one. A user's choice stays.

    Only a renderer whose library is there is chosen: with another one, MuJoCo could not even be imported.
    """
    if any(os.environ.get(name) for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY")):
        return
    for renderer, library in RENDERERS.items():
        # A Python that was compiled without libffi has no ctypes.
        with contextlib.suppress(ImportError, OSError):
            importlib.import_module("ctypes").CDLL(library)
            os.environ["MUJOCO_GL"] = renderer
            return


def creator(gymnasium, name):
    """The class or function by which Gymnasium makes the environment with this name, or None if it knows only a part of the name."""
    entry_point = getattr(gymnasium.registry.get(name), "entry_point", None)
    return gymnasium.envs.registration.load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point


def made(make, maker, drawn):
    """The environment that `make` makes by calling the `maker`. If it is to be `drawn` and can render pictures, it is made in that mode.

    A class is called once, because some simulators can be started only once in a process.
    """
    if not drawn or not renders(maker):
        environment = make()
        if "shoal_probe" in sys.modules:
            examined.append(environment)
        if not drawn or not renders(environment):
            return environment
        # What a function makes could not be asked before.
        close(environment)
    try:
        return make(render_mode="rgb_array")
    except TypeError as error:
        if not any(words in str(error) for words in TAKES_NO_RENDER_MODE):
            raise
        return make()


def renders(maker):
    """Whether an environment, or the class of one, says that it can render pictures."""
    metadata = getattr(maker, "metadata", None)
    # The class of a wrapper has a property there.
    return isinstance(metadata, dict) and "rgb_array" in (metadata.get("render_modes") or [])


def close(environment):
    """Closes the environment if it has a `close`, which gives back windows, files and memory. Exceptions are ignored."""
    with contextlib.suppress(Exception):
        getattr(environment, "close", lambda: None)()


def end_helpers():
    """Kills the processes of `multiprocessing` that closed environments have left, which would hold this one's output open."""
    for child in getattr(sys.modules.get("multiprocessing"), "active_children", list)():
        child.kill()


@contextlib.contextmanager
def without_warnings_of_models(gymnasium, name):
    """Silences MuJoCo's warnings about outdated parts of Gymnasium's models: each process would repeat them per environment."""
    entry_point = getattr(gymnasium.registry.get(name), "entry_point", None)
    if "shoal_probe" in sys.modules or "mujoco" not in str(entry_point) or importlib.util.find_spec("mujoco") is None:
        yield
        return
    mujoco = importlib.import_module("mujoco")
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def load(name, search_folders):
    """The class or function that `module:Class` or `path/to/file.py:Class` names."""
    module_name, _, attribute = name.rpartition(":")
    module = imported(module_name, search_folders)
    if not hasattr(module, attribute):
        near = difflib.get_close_matches(attribute, vars(module), n=1)
        raise Refused(f"{module_name} has no {attribute}", f"did you mean {near[0]}?" if near else "")
    return getattr(module, attribute)


def imported(module_name, search_folders):
    """The module with this name, or the module in this file if the name is a path such as `path/to/file.py`."""
    if module_name.endswith(".py"):
        paths = [os.path.join(folder, module_name) for folder in search_folders]
        path = next((path for path in paths if os.path.isfile(path)), None)
        if path is None:
            raise Refused(f"there is no file {module_name} in {' or '.join(search_folders)} (environment.python_path)")
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        # Last in the path: a named file needs no other folder, and files there might shadow what it imports.
        sys.path += [folder for folder in search_folders if folder not in sys.path]
        return load_file(os.path.abspath(path))
    sys.path[:0] = [folder for folder in search_folders if folder not in sys.path]
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # If another module is missing, which this module imports, the error passes on.
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        searched = f"{', '.join(search_folders)} (environment.python_path) or among the packages of {sys.executable}"
        raise Refused(f"there is no module {error.name} in {searched}") from None


def load_file(path):
    """The module in a file. The file runs once, however many environments are made from it."""
    name = os.path.splitext(os.path.basename(path))[0]
    # A file of this name is imported, not started as a program: what is for the program alone must not run.
    name = "shoal_main" if name == "__main__" else name
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == path:
        return loaded
    specification = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


def as_one_box(gymnasium, environment):
    """The environment with one box as its observation space: dictionaries, tuples and indices are flattened."""
    for name in ("observation_space", "action_space"):
        space = getattr(environment, name)
        if not isinstance(space, gymnasium.Space):
            found = f"{space} of the type {type(space).__module__}.{type(space).__qualname__}"
            raise Refused(f"its {name} is {found}, which is no space of Gymnasium", "take it from gymnasium.spaces")
    space = environment.observation_space
    if isinstance(space, gymnasium.spaces.Box):
        return environment
    try:
        has_fixed_number = space.is_np_flattenable
    except NotImplementedError:
        # A space of a package's own, or one that holds it, such as the texts of MiniGrid.
        has_fixed_number = False
    if not has_fixed_number:
        raise Refused(
            f"its observations are {space}, which has no fixed number of values",
            "return it from a function in a wrapper that shows the rest, for instance gymnasium.wrappers.FilterObservation",
        )
    if not isinstance(environment, gymnasium.Env):
        advice = f"let {type(environment).__name__} extend that class"
        raise Refused(f"its observations are {space}, and Gymnasium flattens those of a gymnasium.Env alone", advice)

    class Flattened(gymnasium.wrappers.FlattenObservation):
        """Names an observation that is not in the space, instead of the error that flattening it raises."""

        def observation(self, observation):
            try:
                flat = super().observation(observation)
            except Exception:
                if observation in space:
                    raise
                raise TypeError(f"the observation {reprlib.repr(observation)} is not one of the observation space, {space}") from None
            if "shoal_probe" in sys.modules:
                mistaken.extend(mistaken_parts(gymnasium.spaces, space, observation))
            return flat

    return Flattened(environment)


def mistaken_parts(spaces, space, observation):
    """The parts of an observation that are not in their spaces and that flattening takes for others: what each is, and its space.

    An index below the first one counts from the end, as in any array, one above the last stands for one of the next number, and an
    array of another shape is read row by row, in which dimensions of 1 change nothing.
    """
    numpy = importlib.import_module("numpy")
    if isinstance(space, (spaces.Dict, spaces.Tuple)):
        for key in space.spaces if isinstance(space, spaces.Dict) else range(len(space.spaces)):
            yield from mistaken_parts(spaces, space.spaces[key], observation[key])
    elif isinstance(space, (spaces.Discrete, spaces.MultiDiscrete)):
        indices, counts = numpy.asarray(observation) - space.start, space.n if isinstance(space, spaces.Discrete) else space.nvec
        if ((indices < 0) | (indices >= counts)).any():
            yield reprlib.repr(observation), space
    elif isinstance(space, (spaces.Box, spaces.MultiBinary)):
        if numpy.squeeze(observation).shape != numpy.squeeze(numpy.empty(space.shape)).shape:
            yield f"an array of the shape {numpy.shape(observation)}", space


def describe(environment):
    """The spaces, time limit and reward threshold. Bounds are strings, because JSON has no infinity."""
    gymnasium, numpy = importlib.import_module("gymnasium"), importlib.import_module("numpy")

    def as_text(bounds):
        with numpy.errstate(over="ignore"):
            return [repr(float(bound)) for bound in numpy.asarray(bounds).astype(numpy.float32).ravel()]

    def finite_as_text(bounds):
        largest = float(numpy.finfo(numpy.float32).max)
        return as_text(numpy.clip(bounds.astype(float), -largest, largest))

    space, action = environment.observation_space, environment.action_space
    arrays = None
    if isinstance(action, gymnasium.spaces.Discrete):
        actions = {"discrete": int(action.n)}
    elif isinstance(action, (gymnasium.spaces.MultiDiscrete, gymnasium.spaces.MultiBinary)):
        arrays = arrays_of(numpy, action)
        actions = {"discrete": math.prod(arrays["counts"])}
    elif not isinstance(action, gymnasium.spaces.Box):
        raise Refused(f"its actions are {action}; Discrete, MultiDiscrete, MultiBinary and Box are supported")
    elif not numpy.issubdtype(action.dtype, numpy.floating):
        raise Refused(f"its actions are {action}, whole numbers; a Box of actions must be of real numbers")
    elif not action.is_bounded():
        raise Refused(f"its actions are {action}, which has no finite bounds that a policy could be scaled to")
    else:
        actions = {"box": {"low": finite_as_text(action.low), "high": finite_as_text(action.high)}}
    threshold = getattr(getattr(environment, "spec", None), "reward_threshold", None)
    order = axes(space.shape)
    observation = {
        "element": "u8" if is_bytes(numpy, space) else "f32",
        "shape": [int(space.shape[axis]) for axis in order],
        "low": as_text(space.low.transpose(order)),
        "high": as_text(space.high.transpose(order)),
    }
    return {
        "observation": observation,
        "action": actions,
        "action_arrays": arrays,
        "time_limit_steps": time_limit(gymnasium, environment),
        "reward_threshold": float(threshold) if isinstance(threshold, numbers.Real) and numpy.isfinite(threshold) else None,
    }


def arrays_of(numpy, space):
    """What turns indices into the arrays of a `MultiDiscrete` or `MultiBinary`. Refused if there are too many of them."""
    # A `MultiBinary` has neither counts nor a start.
    counts = numpy.ravel(getattr(space, "nvec", numpy.full(space.shape, 2))).tolist()
    start = numpy.ravel(getattr(space, "start", numpy.zeros(space.shape, int))).tolist()
    combinations = math.prod(counts)
    if combinations > MOST_COMBINATIONS:
        number = f"{combinations:,}" if combinations < 10**15 else f"10^{math.log10(combinations):.0f}"
        raise Refused(
            f"its actions are {space}: {number} combinations, each an action of its own, and at most {MOST_COMBINATIONS:,} are supported",
            "offer those that matter as one Discrete space, for instance with gymnasium.wrappers.TransformAction",
        )
    return {"counts": counts, "start": start, "shape": list(space.shape), "dtype": space.dtype.name}


def combinations_of(numpy, counts, start, shape, dtype):
    """The arrays of all combinations, by index: the last number changes from each to the next, as in `numpy.unravel_index`."""
    counts = numpy.array(counts, int)
    # After how many indices a number changes. NumPy's own function takes 64 numbers at most.
    steps = numpy.cumprod(counts[::-1])[::-1] // counts
    rows = numpy.arange(math.prod(counts.tolist()))[:, None] // steps % counts + start
    return rows.reshape(len(rows), *shape).astype(dtype)


def is_bytes(numpy, space):
    """Whether observations are bytes of any value, such as the pixels of an image."""
    return space.dtype == numpy.uint8 and bool((space.low == 0).all()) and bool((space.high == 255).all())


def axes(shape):
    """The order of the axes in which Rust gets an observation. An image's channels come first, as convolutions need them.

    The last dimension is taken for them if it is 1, 3 or 4 and smaller than both others. So planes of a small board stay first.
    """
    are_last = len(shape) == 3 and shape[2] in (1, 3, 4) and shape[2] < min(shape[:2])
    return (2, 0, 1) if are_last else tuple(range(len(shape)))


def time_limit(gymnasium, environment):
    """The steps after which a wrapper truncates an episode, or None if there is no limit below 2^32."""
    while isinstance(environment, gymnasium.Wrapper):
        if isinstance(environment, gymnasium.wrappers.TimeLimit):
            steps = int(environment._max_episode_steps)
            return steps if steps < 2**32 else None
        environment = environment.env
    return None


def remark_on_scaling(environment):
    """Names the wrappers that scale by what they have seen themselves, if there are any, and what to use instead."""
    gymnasium = importlib.import_module("gymnasium")
    found = {}
    while isinstance(environment, gymnasium.Wrapper):
        for name, key in SCALING.items():
            # A wrapper that learns no more may have been given what others have seen.
            if isinstance(environment, getattr(gymnasium.wrappers, name)) and getattr(environment, "update_running_mean", True):
                found[name] = f"algorithm.{key}=true"
        environment = environment.env
    if not found:
        return None
    names, keys = " and ".join(found), " and ".join(found.values())
    told = f"with {names} each environment scales by what it has seen itself, which is not saved"
    return f"{told}: evaluations scale differently; use {keys} instead"


def software(environment):
    """Names and versions of the software on which the environment's results depend."""
    module = type(getattr(environment, "unwrapped", environment)).__module__.partition(".")[0]
    names = ["gymnasium", "numpy", *(package for name, package in SIMULATORS.items() if name in sys.modules)]
    if module not in names and module in sys.modules and module != "__main__":
        names += metadata.packages_distributions().get(module, [])[:1]
    versions = [("python", "%d.%d.%d" % sys.version_info[:3])]
    for name in dict.fromkeys(names):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append((name, metadata.version(name)))
    return versions


# What `examine` is doing, for the report of an exception.
during = "construction"
# The environments that were made for `examine`, and the parts of their observations that were taken for others.
examined = []
mistaken = []


def examine(id, keyword_arguments, search_folders):
    """The description of an environment, which is made, reset and stepped once: what always fails must fail here."""
    global during
    bridge = Bridge(id, keyword_arguments, search_folders)
    result = {"description": describe(bridge.environment), "software": software(bridge.environment)}
    result["remark"] = remark_on_scaling(bridge.environment)
    during = "reset"
    # The largest of the seeds that actors give.
    bridge.reset(2**31 - 1)
    bridge.check_finite("observation", bridge.observation_values)
    result["remark"] = result["remark"] or bridge.remark_on_observation()
    during = "step"
    bridge.try_a_step()
    result["remark"] = result["remark"] or bridge.remark_on_observation()
    return result


class Bridge:
    """An environment with a buffer for its observation and one for its action."""

    def __init__(self, id, keyword_arguments, search_folders, drawn=False):
        self.environment = make(id, keyword_arguments, search_folders, drawn)
        numpy = importlib.import_module("numpy")
        description = describe(self.environment)
        self.description = json.dumps(description)
        self.numpy = numpy
        self.shape = tuple(self.environment.observation_space.shape)
        # Rust reads `observation_values`. `observation` is the same memory in the environment's shape.
        element = numpy.uint8 if is_bytes(numpy, self.environment.observation_space) else numpy.float32
        self.observation_values = numpy.zeros(int(numpy.prod(self.shape)), dtype=element)
        # The only type that a buffer of bytes takes unchecked, or None for a buffer of floats, which takes every number.
        self.dtype = self.observation_values.dtype if element is numpy.uint8 else None
        order = axes(self.shape)
        handed_over = self.observation_values.reshape([self.shape[axis] for axis in order])
        self.observation = handed_over.transpose(numpy.argsort(order))
        space, arrays = self.environment.action_space, description["action_arrays"]
        if arrays is not None:
            combinations = combinations_of(numpy, **arrays)
            # A copy, because some environments keep actions or write to them. An array also where the space has no dimension.
            self.step_index = self.stepper(lambda index: combinations[index, ...].copy())
        elif hasattr(space, "n"):
            # Each is made when it is first taken, and kept: memory may have no room for all that a space allows.
            self.step_index = self.stepper(functools.cache(lambda index: space.dtype.type(space.start + index)))
        else:
            self.action_values = numpy.zeros(int(numpy.prod(space.shape)), dtype=numpy.float32)
            self.action_bounds = [numpy.array(description["action"]["box"][end], numpy.float32) for end in ("low", "high")]
            action, element = self.action_values.reshape(space.shape), space.dtype

            def within_bounds():
                exact = action.astype(element)
                return numpy.clip(exact, space.low, space.high, out=exact)

            with numpy.errstate(over="ignore"):
                fit = all((bounds.astype(numpy.float32) == bounds).all() for bounds in (space.low, space.high))
            # A copy, because some environments keep actions to compare them with later ones. Where bounds do not fit into 32
            # bits, an action at one of them would be just outside.
            self.step_values = self.stepper((lambda: action.astype(element)) if fit else within_bounds)

    def reset(self, seed):
        result = self.environment.reset(seed=seed)
        # A list of two may also be an observation alone.
        if not (isinstance(result, (tuple, list)) and len(result) == 2 and (isinstance(result, tuple) or isinstance(result[1], dict))):
            raise TypeError("reset() must return (observation, info)")
        self.observation[...] = self.checked(result[0])

    def stepper(self, action_of):
        """The function that steps. It keeps what it needs in local variables, because its own time counts in fast environments."""
        environment_step, view, checked = self.environment.step, self.observation, self.checked
        shape, dtype, ndarray = self.shape, self.dtype, self.numpy.ndarray

        def step(*index):
            result = environment_step(action_of(*index))
            try:
                observation, reward, terminated, truncated, _ = result
            except (TypeError, ValueError):
                returned = f"{len(result)} values" if hasattr(result, "__len__") else type(result).__name__
                raise TypeError(f"step() returned {returned}, not (observation, reward, terminated, truncated, info)") from None
            if type(observation) is not ndarray or observation.shape != shape or dtype is not None and observation.dtype is not dtype:
                observation = checked(observation)
            view[...] = observation
            return reward, terminated, truncated

        return step

    def try_a_step(self):
        """Takes one step, with the first action or the action nearest to 0, and checks each part of the answer."""
        if hasattr(self, "step_index"):
            reward, terminated, truncated = self.step_index(0)
        else:
            # Within the bounds of `describe`, as all actions of actors are.
            self.action_values[...] = self.numpy.clip(0.0, *self.action_bounds)
            reward, terminated, truncated = self.step_values()
        self.check_finite("observation", self.observation_values)
        self.check_answer(reward, terminated, truncated)
        self.check_finite("reward", self.numpy.asarray(float(reward)))

    def check_answer(self, reward, terminated, truncated):
        """Raises if an actor could not read this answer of a step."""
        # True and False count as numbers, and so does an array or tensor without a dimension.
        if not hasattr(reward, "__float__") or getattr(reward, "ndim", 0) > 0:
            raise TypeError(f"step() returned reward = {reward!r}, which is no number")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if not isinstance(flag, (bool, self.numpy.bool_)):
                raise TypeError(f"step() returned {name} = {flag!r}, which is neither True nor False")

    def check_finite(self, name, values):
        """Refuses values that are not finite as 32-bit floats, because no network can learn from them."""
        with self.numpy.errstate(over="ignore"):
            are_finite = self.numpy.isfinite(values.astype(self.numpy.float32))
        for index in self.numpy.flatnonzero(~are_finite):
            found = f"{name}[{index}] = {values.flat[index]}" if values.ndim else f"{name} = {values}"
            raise Refused(f"it gave {found} in its first {during}: every observation and reward must be finite, as 32-bit floats")

    def remark_on_observation(self):
        """Names the first part or number of the newest observation that is not in the observation space, if there is one."""
        for found, space in mistaken:
            told = f"the environment gave {found} in its first {during}, which is not one of {space}"
            return f"{told}: a run goes on and takes it for one that is, but one of the two may be a mistake"
        space = self.environment.observation_space
        with self.numpy.errstate(over="ignore"):
            low, high = (bounds.astype(self.observation.dtype) for bounds in (space.low, space.high))
        for index in self.numpy.flatnonzero((self.observation < low) | (self.observation > high)):
            value, least, most = (values.flat[index] for values in (self.observation, low, high))
            found = f"the environment gave observation[{index}] = {value!s} in its first {during}"
            bounds = f"its observation space allows {least!s} to {most!s} there"
            return f"{found}, and {bounds}: a run goes on with that, but one of the two may be a mistake"
        return None

    def checked(self, observation):
        """The observation as an array. Raises unless the buffer can hold its values and has its shape.

        NumPy would repeat an observation of a smaller shape to fill the buffer.
        """
        array = self.numpy.asarray(observation)
        if array.shape != self.shape:
            raise ValueError(f"the observation has the shape {array.shape}, and the observation space {self.shape}")
        if self.dtype is not None and array.dtype != self.dtype:
            with self.numpy.errstate(invalid="ignore"):
                as_bytes = array.astype(self.dtype)
            changed = array[as_bytes != array]
            if changed.size > 0:
                found = f"the observation has the value {changed[0]}"
                raise ValueError(f"{found}, and the observation space whole numbers from 0 to 255 (uint8)")
        return array

    def draws(self):
        """Whether the environment renders pictures once it has been reset."""
        return getattr(self.environment, "render_mode", None) == "rgb_array"

    def picture(self):
        """Width, height and the bytes of the rows from the top, or None if the environment does not render pictures."""
        if not self.draws():
            return None
        pixels = self.environment.render()
        is_array = isinstance(pixels, self.numpy.ndarray)
        if not is_array or pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != self.numpy.uint8 or pixels.size == 0:
            returned = f"{pixels.dtype} of the shape {pixels.shape}" if is_array else reprlib.repr(pixels)
            raise TypeError(f"render() returned {returned}, not a picture: bytes (uint8) of the shape (height, width, 3)")
        return pixels.shape[1], pixels.shape[0], pixels.tobytes()

    def close(self):
        close(self.environment)
