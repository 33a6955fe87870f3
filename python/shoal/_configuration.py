"""Turns arguments of `train` and `start` into those of the command line: a file or preset, and changes of keys."""

import functools
import importlib.util
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path


def command_line(config, algorithm, changes):
    """The arguments of `shoal train`, and the file that was written for `config`, if any, which the caller removes."""
    tables = dict(changes)
    if algorithm is not None:
        tables["algorithm"] = {"name": algorithm} if isinstance(algorithm, str) else algorithm
    if isinstance(config, Mapping):
        return _of_tables(config, tables)
    if isinstance(config, (str, os.PathLike)):
        tables = _with_id_in_words(tables)
        return [os.fspath(config), *changes_of(tables)], None
    environment = _with_changes(_table_of(config), tables.get("environment", {}))
    name = environment.pop("id")
    if "name" not in tables.get("algorithm", {}):
        raise TypeError(f"say which algorithm learns {name}: algorithm='ppo', for instance")
    return [name, *changes_of({**tables, "environment": environment})], None


def in_python(error, arguments):
    """`error`, the text of a refusal of the command line `arguments`, with changes as keywords of `train`."""
    for option, change in pairwise(arguments):
        if option == "--set":
            # As a function: the change may have backslashes.
            error = re.sub(rf"(?m)^--set {re.escape(change)}: ", lambda _, it=change: f"{_keyword(it)}: ", error)
    return error


def too_long(arguments):
    """What to say of the command line `arguments` if it is too long for Linux to start a program with it."""
    longest = max(arguments, key=len)
    path, _, _ = longest.partition("=")
    # What Linux takes: 32 pages for one argument.
    most_bytes = 32 * os.sysconf("SC_PAGE_SIZE")
    return (
        f"{_keyword(f'{path}=...')} is {len(os.fsencode(longest)):,} bytes long as text, and a command line takes "
        f"{most_bytes:,} bytes of one value and {os.sysconf('SC_ARG_MAX'):,} in all: give the configuration as a "
        "dictionary with this value in it, or let the environment read the value from a file"
    )


def _keyword(change):
    """A change of a key, `learner.batch_size=64`, as a keyword: `learner={"batch_size": 64}`."""
    path, _, value = change.partition("=")
    table, is_key, key = path.partition(".")
    value = {"true": "True", "false": "False"}.get(value, value)
    return f'{table}={{"{key}": {value}}}' if is_key else f"{table}={value}"


def _of_tables(config, tables):
    """Write tables to a temporary file, and name the run after its environment instead of that file."""
    for name, table in config.items():
        if not isinstance(table, Mapping):
            raise TypeError(f"the configuration must hold tables of keys, and {name!r} is {type(table).__name__}")
    tables = _with_id_in_words(tables)
    changed = tables.get("environment", {})
    # If the change is not a table, the program refuses it and says where the value belongs.
    environment = {**config.get("environment", {}), **changed} if isinstance(changed, Mapping) else {}
    # Put in words only now: the folder of a class comes before a python_path, wherever that is given.
    environment = _with_id_in_words({"environment": environment})["environment"]
    config = {name: dict(table) for name, table in _with_id_in_words(config).items()}
    environment_id = str(environment.get("id", ""))
    given = environment.get("python_path", "")
    # If it is neither a text nor a path, the program refuses it and says what it takes.
    if environment_id.startswith(("python:", "gymnasium:")) and isinstance(given, (str, os.PathLike)):
        # Without python_path, modules would be looked for beside the temporary file, in a folder that any user can
        # write to.
        python_path = os.pathsep.join(os.path.abspath(folder) for folder in os.fspath(given).split(os.pathsep))
        tables = {**tables, "environment": {**changed, "python_path": python_path}}
    run_name = re.sub(r"\W+", "_", environment_id.rpartition(":")[2])
    if run_name:
        # In the file, where every way of naming the run replaces it, `name=` as well as `run={"name": ...}`.
        config["run"] = {"name": run_name, **config.get("run", {})}
    options = changes_of(tables)
    lines = [line for name, table in config.items() for line in (f"[{name}]", *_assignments(table))]
    with tempfile.NamedTemporaryFile("w", prefix="shoal-", suffix=".toml", delete=False, encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return [file.name, *options], file.name


def _with_id_in_words(tables):
    """`tables`, in which `environment={"id": MyTask}` may have the class or function itself."""
    table = tables.get("environment")
    if not isinstance(table, Mapping) or not callable(table.get("id")):
        return tables
    changes = {key: value for key, value in table.items() if key != "id"}
    return {**tables, "environment": _with_changes(_table_of(table["id"]), changes)}


def _table_of(environment):
    """The table [environment] for a class or function that makes an environment."""
    if isinstance(environment, functools.partial):
        name = getattr(environment.func, "__name__", environment.func)
        raise TypeError(
            f"{environment!r} is no configuration: give {name}, and its arguments as environment="
            '{"keyword_arguments": {...}}'
        )
    if not callable(environment) or not hasattr(environment, "__qualname__"):
        raise TypeError(
            f"{environment!r} is no configuration: give a preset, a path, a dictionary, the id of an environment, "
            "or a class or function that makes one"
        )
    name = environment.__qualname__
    module = sys.modules.get(environment.__module__)
    if getattr(module, name, None) is not environment:
        raise TypeError(
            f"processes of the run cannot import {name}: define it at the top of a module, under a name of its own"
        )
    # `__main__` is the script that was started; in a process that the script has spawned, it is `__mp_main__`.
    # A module that `python -m` has started has its own name in `__spec__`.
    imported = environment.__module__
    if imported in ("__main__", "__mp_main__"):
        imported = getattr(getattr(module, "__spec__", None), "name", imported)
    file = getattr(module, "__file__", None)
    if imported in ("__main__", "__mp_main__"):
        if file is None:
            where = "a notebook or a prompt"
            raise TypeError(f"processes of the run cannot import {name} from {where}: write it to a file and import it")
        if not file.endswith(".py"):
            raise TypeError(
                f"processes of the run cannot import {name} from {file}, whose name does not end in .py: rename the "
                f"file, or write {name} to one that is named so, and import it"
            )
        return {"id": f"python:{Path(file).resolve()}:{name}"}
    # Of a module without a `__spec__`, which was made by hand, `find_spec` would raise an error about that attribute.
    if file is None or getattr(module, "__spec__", None) is None or importlib.util.find_spec(imported) is None:
        raise TypeError(f"processes of the run cannot import {imported}, where {name} is defined")
    # The folder that holds the outermost package. Links are not followed: files may have other names there.
    root = Path(file).absolute().parents[imported.count(".") + (Path(file).name == "__init__.py")]
    return {"id": f"python:{imported}:{name}", "python_path": str(root)}


def _with_changes(own, changes):
    """The table of a class or function with the caller's changes, whose python_path comes after the table's own."""
    if not isinstance(changes, Mapping):
        raise TypeError(
            f"environment is {changes!r}; beside a class or function it holds keys: "
            'environment={"keyword_arguments": {"length": 4}}, for instance'
        )
    if "id" in changes:
        raise TypeError(
            f"environment has the id {changes['id']!r} beside a class or function, which is the environment: give "
            "only the one to train in"
        )
    table = {**own, **changes}
    given = changes.get("python_path")
    # If it is neither a text nor a path, the program refuses it and says what it takes.
    if isinstance(given, (str, os.PathLike)):
        folders = [os.path.abspath(folder) for folder in os.fspath(given).split(os.pathsep) if folder]
        table["python_path"] = os.pathsep.join([own["python_path"], *folders] if "python_path" in own else folders)
    return table


def changes_of(tables):
    """`--set` for every key, also for a value that is not a table: the program refuses it and says where it belongs."""
    changes = []
    for name, table in tables.items():
        is_table = isinstance(table, Mapping)
        changes += [f"{name}.{line}" for line in _assignments(table)] if is_table else _assignments({name: table})
    return [word for change in changes for word in ("--set", change)]


def _assignments(table):
    lines = []
    for key, value in table.items():
        if key in ("keyword_arguments", "evaluation_arguments") and isinstance(value, Mapping):
            # The program takes the arguments of an environment as JSON.
            value = json.dumps(value, default=_plain)
        lines.append(f"{key}={_toml(value)}")
    return lines


def _plain(value):
    """A number or array of NumPy as a number or a list of Python."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r} is neither a number, a text, a list nor a dictionary")


def _toml(value):
    """A value in TOML. Numbers and arrays of NumPy become numbers and lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    match value:
        case None:
            return '"none"'
        case bool():
            return "true" if value else "false"
        case int():
            return int.__repr__(value)
        case float():
            return float.__repr__(value)
        case str() | os.PathLike():
            return _quoted(os.fspath(value))
        case list() | tuple():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case Mapping():
            return f"{{{', '.join(f'{_quoted(str(key))} = {_toml(item)}' for key, item in value.items())}}}"
        case _:
            raise TypeError(f"no configuration can hold {value!r}")


def _quoted(text):
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TypeError(f"no configuration can hold {text!r}, which is no Unicode") from None
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
