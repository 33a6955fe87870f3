"""From Python's arguments to what the command line takes: a file or a preset, and changes of keys."""

import importlib.util
import inspect
import json
import math
import os
import re
import sys
import tempfile
from pathlib import Path

from . import _native


def command_line(config, algorithm, changes):
    """The arguments of `shoal train` for `config`, and the file that was written for it, if any, to be removed afterwards."""
    tables = dict(changes)
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise TypeError(f"{name} must be a dictionary of the keys in [{name}], not {type(table).__name__}")
    if algorithm is not None:
        tables["algorithm"] = {"name": algorithm} if isinstance(algorithm, str) else algorithm
    if isinstance(config, dict):
        return _of_tables(config, tables)
    if not isinstance(config, (str, os.PathLike)):
        return _of_environment(_id_of(config), tables)
    asked = os.fspath(config)
    if os.path.exists(asked) or asked.endswith(".toml") or _is_preset(asked):
        return [asked, *_changes(tables)], None
    if "name" in tables.get("algorithm", {}):
        return _of_environment({"id": asked}, tables)
    # The program says what was probably meant.
    return [asked, *_changes(tables)], None


def _of_environment(environment, tables):
    """An environment that no preset is made for: a configuration of its own."""
    if "name" not in tables.get("algorithm", {}):
        raise TypeError(f"say which algorithm learns {environment['id']}: algorithm='ppo', for instance")
    return _of_tables({"environment": environment, "algorithm": {"name": tables["algorithm"]["name"]}}, tables)


def _of_tables(config, tables):
    """A configuration in a file of its own. Its run is named after the environment, since nobody knows the file."""
    written = _written(config)
    is_named = any("name" in (source.get("run") or {}) for source in (config, tables))
    environment = str((config.get("environment") or {}).get("id", ""))
    name = re.sub(r"\W+", "_", environment.rpartition(":")[2])
    named = [] if is_named or not name else ["--name", name]
    return [written, *named, *_changes(tables)], written


def _is_preset(name):
    return any(name in (preset["name"], preset["environment"]) for preset in json.loads(_native.presets())["presets"])


def _id_of(environment):
    """The table [environment] for a class or function that makes an environment."""
    if not callable(environment) or not hasattr(environment, "__qualname__"):
        raise TypeError(
            f"{environment!r} is no configuration: give a preset, a path, a dictionary, the id of an environment, "
            "or a class or function that makes one"
        )
    name = environment.__qualname__
    if "." in name or "<" in name:
        raise TypeError(f"processes of the run cannot import {name}: define it at the top of a module")
    if environment.__module__ == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            raise TypeError(
                f"processes of the run cannot import {name} from a notebook or a prompt: write it to a file and import it"
            )
        return {"id": f"python:{Path(file).resolve()}:{name}"}
    module = inspect.getmodule(environment)
    if getattr(module, "__file__", None) is None or importlib.util.find_spec(environment.__module__) is None:
        raise TypeError(f"processes of the run cannot import {environment.__module__}, where {name} is defined")
    root = Path(module.__file__).resolve().parents[environment.__module__.count(".")]
    if Path(module.__file__).name == "__init__.py":
        root = root.parent
    return {"id": f"python:{environment.__module__}:{name}", "python_path": str(root)}


def _changes(tables):
    """`--set` for every key."""
    return [
        word
        for name, table in tables.items()
        for key, value in table.items()
        for word in ("--set", f"{name}.{key}={_toml(value)}")
    ]


def _written(tables):
    """A file with these tables; keys outside of a table would be refused by the program."""
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise TypeError(f"the configuration must hold tables of keys, and {name!r} is {type(table).__name__}")
    lines = [
        line
        for name, table in tables.items()
        for line in (f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items()))
    ]
    with tempfile.NamedTemporaryFile("w", prefix="shoal-", suffix=".toml", delete=False, encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return file.name


def _toml(value):
    """A value as TOML writes it; numbers of NumPy are numbers."""
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    match value:
        case bool():
            return "true" if value else "false"
        case float() if math.isnan(value) or math.isinf(value):
            return str(value)
        case int() | float():
            return repr(value)
        case str() | os.PathLike():
            return json.dumps(os.fspath(value))
        case list() | tuple():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case dict():
            return f"{{{', '.join(f'{json.dumps(str(key))} = {_toml(item)}' for key, item in value.items())}}}"
        case _:
            raise TypeError(f"no configuration can hold {value!r}")
