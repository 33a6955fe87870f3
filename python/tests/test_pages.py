"""Every command and every snippet of the documentation is run or checked. Runs are short, and nothing is built."""

import json
import re
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from pages import blocks, configurations
from pages.commands import SUBCOMMANDS, commands
from pages.given import AFTER, BEFORE, SHORT_RUNS, SHORTER
from pages.machine import Machine, lacks_something
from pages.options import WATCHDOG_S, check_command
from pages.terminal import Terminal

ADAPTERS = "docs/python-adapters.md"
#: Blocks that are not run, or only in part: the page, a line of the block, and why, or which libraries may be missing.
EXCEPTIONS = [
    ("docs/own.md", "own train corridor.toml", "tests/own_algorithm.rs builds and calls it; here its options are read"),
    ("docs/weights.md", "from safetensors import safe_open", "torch, safetensors"),
    ("docs/python.md", "policy.to_torch()", "torch, onnx"),
    ("docs/python.md", "import onnxruntime", "onnxruntime"),
    ("docs/run-folder.md", "import matplotlib.pyplot as plt", "matplotlib"),
    ("README.md", 'policy.to_onnx("policy.onnx")', "torch, onnx"),
    (ADAPTERS, "from shoal.adapters.stable_baselines3 import PrioritizedDQN", "torch, stable_baselines3"),
    (ADAPTERS, "from shoal.adapters.stable_baselines3 import ShoalReplayBuffer", "torch, stable_baselines3"),
    (ADAPTERS, "from shoal.adapters.tianshou import ShoalVectorReplayBuffer", "torch, tianshou"),
    (ADAPTERS, "from shoal.adapters.torchrl import ShoalSampler", "torch, torchrl"),
    (ADAPTERS, "from shoal.adapters.torchrl import ShoalStorage, shoal_replay_buffer", "torch, torchrl"),
]
LIBRARIES = {"matplotlib", "onnx", "onnxruntime", "safetensors", "stable_baselines3", "tianshou", "torch", "torchrl"}
LANGUAGES = {"python", "rust", "sh", "text", "toml"}
PROGRAMS = {"cargo", "own", "pip", "python", "python3", "shoal", "supervisor"} | SUBCOMMANDS
#: Names that a reader replaces, and files that a page tells how to write.
PLACEHOLDER = re.compile(r"^[A-Z]+$|FILE|^[\w]+\.toml$")


def exception(block):
    """Why a block is not run, or only in part; `None` if all of it is run."""
    return next(
        (why for page, line, why in EXCEPTIONS if page == block.page and f"\n{line}" in f"\n{block.text}"), None
    )


def each_block(*languages):
    return pytest.mark.parametrize("block", blocks.blocks(*languages), ids=str)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("pages"))
    yield machine
    machine.end()


@pytest.fixture(scope="module")
def outcomes(machine):
    """The outcomes of the Python blocks of a page, which one interpreter runs from top to bottom."""
    known = {}

    def of(page):
        if page not in known:
            known[page] = interpreted(machine, page)
        return known[page]

    return of


def interpreted(machine, page):
    found = [it for it in blocks.parts(page)[0] if it.language == "python"]
    folder = machine.place()
    texts = [it.text + AFTER.get(page, "") for it in found]
    for long, short in SHORTER.items():
        texts = [text.replace(long, short) for text in texts]
    asked = {
        "page": page,
        "blocks": list(zip([it.line for it in found], texts, strict=True)),
        "libraries": sorted(library for library in LIBRARIES if find_spec(library) is None),
        "before": SHORT_RUNS + BEFORE.get(page, ""),
    }
    result = subprocess.run(
        # `-P`: the folder of the program, whose modules have common names, must not come before all others.
        [sys.executable, "-P", Path(blocks.__file__).with_name("interpreter.py"), "outcomes.json"],
        input=json.dumps(asked),
        cwd=folder,
        env=machine.environment,
        capture_output=True,
        text=True,
        # All blocks of the page, with libraries that take long to load.
        timeout=2 * WATCHDOG_S,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return dict(zip(found, json.loads((folder / "outcomes.json").read_text()), strict=True))


def test_a_dashboard_is_reached_where_a_proxy_is_set(machine, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    Terminal(machine).dashboard(["runs/latest"])


@each_block("python")
def test_a_snippet_in_python_does_what_its_page_says(outcomes, block):
    outcome = outcomes(block.page)[block]
    assert outcome["failed"] is None, outcome["failed"]
    if outcome["without"]:
        known = (exception(block) or "").split(", ")
        assert set(outcome["without"]) <= set(known), f"no exception of this block names {outcome['without']}"
        pytest.skip(f"not all of it is run without {', '.join(sorted(set(outcome['without'])))}")


@each_block("sh")
def test_commands_do_what_their_page_says(machine, block):
    found = commands(block.text)
    assert found
    if exception(block):
        for command in found:
            check_command(command)
        pytest.skip(exception(block))
    terminal = Terminal(machine)
    for command in found:
        terminal.type(command)


@each_block("toml")
def test_a_part_of_a_configuration_is_accepted(machine, block):
    if block.page == "docs/own.md":
        return assert_excerpt(block, "corridor.toml")
    terminal = Terminal(machine)
    configurations.provide_environments(terminal.folder / "configs")
    for variant in configurations.variants(block.text):
        tables = configurations.whole(configurations.BASES[block.page], variant)
        configurations.write(terminal.folder / "configs/task.toml", tables)
        if not terminal.check(["configs/task.toml"]):
            # Check everything but the environment, which is not installed.
            tables["environment"] = configurations.IMAGES
            configurations.write(terminal.folder / "configs/task.toml", tables)
            assert terminal.check(["configs/task.toml"])


@each_block("rust")
def test_a_snippet_in_rust_is_code_of_the_example(block):
    assert_excerpt(block, "src/*.rs")


def assert_excerpt(block, files):
    texts = [path.read_text(encoding="utf-8") for path in blocks.ROOT.glob(f"examples/own_algorithm/{files}")]
    assert any(block.text in text for text in texts), f"no file {files} of examples/own_algorithm has these lines"


@pytest.mark.parametrize("page", blocks.pages())
def test_commands_that_the_prose_names_exist(machine, page):
    wrong = []
    for number, span in blocks.spans(page):
        try:
            named = [it for it in commands(span) if it.program in PROGRAMS and len(it.words) > 1]
        except ValueError:
            # The quotation marks are not closed, so it is no command.
            continue
        for command in named:
            try:
                check_command(command)
                check_configuration(machine, command)
            except AssertionError as error:
                wrong.append(f"{page}:{number}: `{span}`: {error}")
    assert not wrong, "\n".join(wrong)


def check_configuration(machine, command):
    """Assert that a command that trains has a valid configuration, unless it is an example."""
    words = command.of_shoal or []
    is_example = any(PLACEHOLDER.search(word) for word in words)
    if words[:1] == ["train"] and len(words) > 1 and not is_example:
        result = machine.shoal(machine.ended, [*words, "--check"])
        assert result.returncode == 0 or lacks_something(result.stderr), result.stderr


def test_each_exception_is_for_one_block():
    found = Counter(
        (block.page, line) for block in blocks.blocks() for _, line, _ in EXCEPTIONS if f"\n{line}" in f"\n{block.text}"
    )
    assert [(page, line) for page, line, _ in EXCEPTIONS if found[page, line] != 1] == []


def test_each_block_names_its_language():
    assert [str(block) for block in blocks.blocks() if block.language not in LANGUAGES] == []


def test_code_that_is_replaced_by_shorter_code_is_still_there():
    assert [long for long in SHORTER if not any(long in block.text for block in blocks.blocks("python"))] == []
