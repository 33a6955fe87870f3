"""`python parse.py SCRIPT ARGUMENTS`: has the script parse its arguments, and ends before it does anything else."""

import argparse
import importlib.abc
import importlib.machinery
import os
import runpy
import sys
from pathlib import Path
from unittest.mock import MagicMock

#: What scripts measure or draw with, which need not be installed for their options to be read.
MEASURED = {"mujoco", "psutil", "pyte", "rich"}


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules in place of those of `MEASURED` that are not installed."""

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
    # As Python itself does it for a script; and nothing is left beside the script.
    sys.argv, sys.path[0], sys.dont_write_bytecode = sys.argv[1:], str(script.parent), True
    runpy.run_path(str(script), run_name="__main__")
    sys.exit("it has not parsed its arguments")


main()
