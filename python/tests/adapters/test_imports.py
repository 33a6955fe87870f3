"""Each module imports only the libraries that it is for."""

import subprocess
import sys

import pytest

pytest.importorskip("shoal", reason="shoal is not built: run `maturin develop` in python/")

LIBRARIES = {"torch", "gymnasium", "stable_baselines3", "tianshou", "torchrl", "tensordict"}


@pytest.mark.parametrize(
    ("module", "its_own"),
    [
        ("shoal", set()),
        ("shoal.adapters", set()),
        ("shoal.adapters._priorities", set()),
        ("shoal.adapters.stable_baselines3", {"torch", "gymnasium", "stable_baselines3"}),
        ("shoal.adapters.tianshou", {"torch", "gymnasium", "tianshou"}),
        ("shoal.adapters.torchrl", {"torch", "torchrl", "tensordict"}),
    ],
)
def test_a_module_imports_no_library_but_its_own(module, its_own):
    for library in its_own:
        pytest.importorskip(library, reason=f"{library} is not installed")
    # The other libraries cannot be imported in this process, as if they were not installed.
    code = f"""
import sys
for name in {sorted(LIBRARIES - its_own)!r}:
    sys.modules[name] = None
import {module}
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
