#!/usr/bin/env python3
"""Makes the two virtual environments of these benches, beside this file (git-ignored), with the versions of requirements*.txt.

`.venv` holds all libraries but Reverb. It also finds the packages in the virtual environment of the other peer benches, so
they are not installed again. `.venv-reverb` holds Reverb, which needs an older NumPy and a TensorFlow of its own (Python
3.11 at the latest). Both get Shoal's package, built from this checkout unless `--wheel` names a wheel. They take about 10 GB
in all, 6 GB of it here.
"""

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(HERE.parent))
import peers  # noqa: E402


def environment(name, requirements, base=None):
    """The folder of a virtual environment, which is made anew if its requirements have changed."""
    folder = HERE / name
    marker = folder / "installed.txt"
    wanted = (HERE / requirements).read_text()
    if marker.exists() and marker.read_text() == wanted:
        return folder
    venv.create(folder, with_pip=True, clear=True)
    if base:
        site_packages(folder).joinpath("base.pth").write_text(f"{site_packages(base)}\n")
    subprocess.run([folder / "bin/pip", "install", "-q", "-r", HERE / requirements], check=True)
    marker.write_text(wanted)
    return folder


def site_packages(folder):
    return next((folder / "lib").glob("python3.*")) / "site-packages"


def build(folder):
    """Builds a wheel of this checkout."""
    subprocess.run([HERE / ".venv/bin/maturin", "build", "--release", "-q", "-o", folder], cwd=ROOT / "python", check=True)
    return next(Path(folder).glob("shoal_rl-*.whl"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, help="wheel of Shoal's package")
    parser.add_argument("--without-reverb", action="store_true")
    arguments = parser.parse_args()
    made = [environment(".venv", "requirements.txt", base=Path(peers.python()).parents[1])]
    if not arguments.without_reverb:
        made.append(environment(".venv-reverb", "requirements-reverb.txt"))
    with tempfile.TemporaryDirectory() as folder:
        wheel = arguments.wheel or build(folder)
        for one in made:
            subprocess.run([one / "bin/pip", "install", "-q", "--force-reinstall", "--no-deps", wheel], check=True)


if __name__ == "__main__":
    main()
