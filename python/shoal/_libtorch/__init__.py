"""A second build of the native module, with the libtorch engine. It runs on the libraries of an installed PyTorch."""

import ctypes
import importlib.metadata
import importlib.util
from pathlib import Path

FOLDER = Path(__file__).parent
#: Libraries of PyTorch, each after the ones that it needs. The library for CUDA registers itself when it is loaded.
LIBRARIES = ("libc10.so", "libtorch_cpu.so", "libtorch_cuda.so", "libtorch.so")


def load():
    """Load the module without importing PyTorch's Python code. `ImportError` says why it cannot be loaded."""
    expected = _expected()
    libraries = _installed(expected)
    try:
        for library in LIBRARIES:
            if (libraries / library).exists():
                ctypes.CDLL(str(libraries / library), ctypes.RTLD_GLOBAL)
        from . import _native
    except (ImportError, OSError) as error:
        raise ImportError(f"the libraries of PyTorch in {libraries} cannot be loaded: {error}") from error
    return _native


def check():
    """Raise the `ImportError` that `load` would raise, as far as that is known without loading anything."""
    _installed(_expected())


def _expected():
    """The major and minor version of PyTorch that the module was built for."""
    try:
        return (FOLDER / "version").read_text().strip()
    except FileNotFoundError:
        raise ImportError("this package was built without the libtorch engine") from None


def _installed(expected):
    install = f"pip install 'torch=={expected}.*'"
    try:
        version = importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        raise ImportError(f"the libtorch engine needs PyTorch {expected}: {install}") from None
    # PyTorch's C++ interface changes with every minor version.
    if version.split(".")[:2] != expected.split("."):
        raise ImportError(f"the libtorch engine needs PyTorch {expected}, and {version} is installed: {install}")
    found = importlib.util.find_spec("torch")
    return Path(found.submodule_search_locations[0]) / "lib"
