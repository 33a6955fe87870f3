"""Shoal's package of another commit, in the same process as this one's: has a change made it slower?

`SHOAL_BEFORE` names the folder that it was installed into (`pip install --no-deps --target FOLDER WHEEL`). Two packages of
one name can live side by side, since each holds on to its own modules: while the name means the other package, the
adapters of `shoal.py` are made once more.
"""

import importlib.util
import os
import sys
from pathlib import Path

from . import shoal as now

SUFFIX = "_before"


def belongs_to_the_package(module):
    return module == "shoal" or module.startswith("shoal.")


def adapters_of(folder):
    """The module with the adapters, of the package in `folder`."""
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if belongs_to_the_package(name)}
    sys.path.insert(0, str(folder))
    try:
        specification = importlib.util.spec_from_file_location(f"{__package__}.shoal{SUFFIX}_adapters", now.__file__)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
        for name in filter(belongs_to_the_package, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(kept)
    if folder not in Path(module.shoal.__file__).parents:
        raise ImportError(f"SHOAL_BEFORE={folder} holds no package `shoal`")
    return module


if not os.environ.get("SHOAL_BEFORE"):
    raise ImportError("SHOAL_BEFORE names no folder that Shoal's package of another commit was installed into")
before = adapters_of(Path(os.environ["SHOAL_BEFORE"]).resolve())
for table in (before.TREES, before.BUFFERS, before.SHARED):
    for adapter in table.values():
        adapter.label += ", before"
TREES, BUFFERS, SHARED = (
    {name + SUFFIX: adapter for name, adapter in table.items()} for table in (before.TREES, before.BUFFERS, before.SHARED)
)
