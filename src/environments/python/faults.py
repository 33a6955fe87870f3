"""What is told of an exception: in which words, where it was raised, and which package is missing.

`shoal_bridge` hands on what Rust and the code of other environments need of it.
"""

import importlib
import importlib.util
import json
import os
import re
import shlex
import sys
import traceback
from importlib import metadata

# The package to install if there is no Gymnasium. The set-up of a checkout pins the same version.
GYMNASIUM = "gymnasium[classic-control,box2d,mujoco]==1.4.0"
# On a newer Python, or on another processor, Box2D would have to be compiled.
if sys.version_info >= (3, 14) or os.uname().machine != "x86_64":
    GYMNASIUM = GYMNASIUM.replace("box2d,", "")
ALE = "ale-py==0.12.1"
# The extras of Gymnasium and the packages that bring a module of another name.
EXTRAS = {"Box2D": "box2d", "mujoco": "mujoco", "pygame": "classic-control", "cv2": "other", "moviepy": "other"}
PACKAGES = {"ale_py": ALE, "cv2": "opencv-python", "PIL": "pillow", "sklearn": "scikit-learn", "yaml": "pyyaml"}

# How many calls of a traceback are shown. Calls further out are Gymnasium's wrappers, or levels of a recursion.
INNERMOST_CALLS = 6
# The files of calls that come before the environment's own: Shoal's own, the code that runs them, and the import system.
CALLING_FILES = ("<string>", "<shoal>", importlib.__file__, "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>")


class Refused(Exception):
    """Says why an environment cannot be used here, in words that need no traceback, and in `advice` what to do instead."""

    def __init__(self, reason, advice=""):
        super().__init__(reason)
        self.advice = advice


def report(error):
    """An exception as JSON: its kind, a summary, advice, and the end of its traceback from the environment's first call on."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in CALLING_FILES:
        frames = frames.tb_next
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    # Python puts the line of a syntax error before the message, and only the import system has called the file.
    is_syntax = isinstance(error, SyntaxError)
    calls = traceback.format_exception(type(error), error, frames, limit=-INNERMOST_CALLS)
    answer = {
        "kind": "raised",
        "summary": f"{type(error).__name__}: {error.msg}" if is_syntax else lines[0] if lines else type(error).__name__,
        "advice": "",
        "traceback": "".join(calls).rstrip() if frames or is_syntax else "",
    }
    errors = getattr(sys.modules.get("gymnasium"), "error", None)
    if isinstance(error, Refused):
        answer.update(kind="refused", summary=str(error), advice=error.advice)
    elif errors is not None and isinstance(error, errors.DependencyNotInstalled):
        answer.update(kind="missing", advice=install_command(package_in(str(error))))
    elif isinstance(error, ModuleNotFoundError) and error.name:
        module = error.name.partition(".")[0]
        if is_missing(module):
            kind = "missing" if module in (*EXTRAS, *PACKAGES, "gymnasium") else "unknown"
            answer.update(kind=kind, advice=install_command(package_of(module)))
    # A file name that is no UTF-8 has characters that are no Unicode, which Rust does not read.
    return json.dumps({key: text.encode(errors="backslashreplace").decode() for key, text in answer.items()})


def is_missing(module):
    """Whether there is no module with this name (without a dot). If there is one, only a submodule of it can be missing."""
    return module not in sys.modules and importlib.util.find_spec(module) is None


def package_in(message):
    """The package that a message of Gymnasium asks to install."""
    extra = re.search(r"gymnasium\[[\"']?([\w,-]+)", message)
    if extra:
        return gymnasium_with(extra.group(1))
    package = re.search(r"pip install [\"'`]?([\w.\[\]=<>-]+)", message)
    return package.group(1) if package else GYMNASIUM


def package_of(module):
    """The package that brings a module."""
    if module == "gymnasium":
        return GYMNASIUM
    return gymnasium_with(EXTRAS[module]) if module in EXTRAS else PACKAGES.get(module, module)


def gymnasium_with(extra):
    """The requirement for an extra of Gymnasium, in the version that is installed."""
    try:
        return f"gymnasium[{extra}]=={metadata.version('gymnasium')}"
    except metadata.PackageNotFoundError:
        return GYMNASIUM


def install_command(package):
    """The command that installs a package where this interpreter finds it. uv makes environments without pip."""
    python = shlex.quote(sys.executable)
    return f'uv pip install --python {python} "{package}"' if is_missing("pip") else f'{python} -m pip install "{package}"'
