"""Has a change made Shoal's package slower? The package of another commit, in the same process as this commit's.

`SHOAL_BEFORE` names the folder that it was installed into (`pip install --no-deps --target FOLDER WHEEL`). While the name
`shoal` means that package, its replay is loaded and the adapters of `shoal.py` are made once more. Afterwards the name means
this commit's package again. Native code looks up options and errors by name when it is called, so these are this commit's
for both packages.
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
        # The package loads these at their first use, which must be now.
        for name in ("Batch", "Replay", "SumTree"):
            getattr(module.shoal, name)
    finally:
        sys.path.remove(str(folder))
        for name in filter(belongs_to_the_package, list(sys.modules)):
            del sys.modules[name]
        sys.modules.update(kept)
    is_other = folder in Path(module.shoal.__file__).parents and module.shoal.Replay is not now.shoal.Replay
    if not is_other:
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
