"""`python parse.py SCRIPT ARGUMENTS`: has the script parse its arguments, and ends before it does anything else."""

import argparse
import importlib.abc
import importlib.machinery
import os
import runpy
import sys
from pathlib import Path
from unittest.mock import MagicMock

#: Libraries that scripts measure or draw with. Their options can be read without these.
MEASURED = {"mujoco", "psutil", "pyte", "rich"}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces the modules of `MEASURED` that are not installed."""

    def find_spec(self, name, path, target=None):
        is_measured = name.partition(".")[0] in MEASURED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_measured else None

    def create_module(self, spec):
        return MagicMock(name=spec.name)

    def exec_module(self, module):
        pass


def main():
    script = Path(sys.argv[1])
    assert "parse_args(" in script.read_text(encoding="utf-8"), "it would be run"
    parse_args = argparse.ArgumentParser.parse_args

    def parse_and_end(parser):
        parse_args(parser)
        os._exit(0)

    argparse.ArgumentParser.parse_args = parse_and_end
    sys.meta_path.append(StandIns())
    # As Python itself does for a script.
    sys.argv = sys.argv[1:]
    sys.path[0] = str(script.parent)
    # So that nothing is left beside the script.
    sys.dont_write_bytecode = True
    runpy.run_path(str(script), run_name="__main__")
    sys.exit("it has not parsed its arguments")


main()
