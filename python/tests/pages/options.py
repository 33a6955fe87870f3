"""Checks whether a command that is not run here would be understood by its program."""

import functools
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from command_line import PROGRAMS

from pages.blocks import ROOT

WATCHDOG_S = 120
SHOAL = [sys.executable, "-m", "shoal"]
XTASK = PROGRAMS / "xtask"
EXAMPLE = ROOT / "examples/own_algorithm"
#: Where pages run scripts from, beside the root.
FOLDERS = [ROOT, ROOT / "benches/peers/replay", ROOT / "python"]
#: Flags of cargo and nextest that pages use, and options with the kind of target that they name.
FLAGS = {"--release", "--no-default-features", "--lib", "--open", "--no-capture"}
TARGETS = {"--test": "test", "--bench": "bench", "--example": "example", "--bin": "bin"}


def output(*command):
    result = subprocess.run(command, capture_output=True, text=True, timeout=WATCHDOG_S, check=False, cwd=ROOT)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


@functools.cache
def understood(*program):
    """The options of a program made with clap, and its largest number of arguments.

    Each option is given with whether it takes a value, and with the possible values, if they are listed.
    """
    text = output(*program, "--help")
    options = {}
    for entry in re.split(r"\n(?= +(?:-\w, )?--\w)", text)[1:]:
        name, value = re.match(r" +(?:-\w, )?(--[\w-]+)( <)?", entry).groups()
        choices = re.search(r"\[possible values: (.*?)\]", entry, re.DOTALL)
        options[name] = (value is not None, choices and re.split(r",\s+", choices[1]))
    usage = re.search(r"^Usage: (.*?)\n\n", text, re.MULTILINE | re.DOTALL)[1]
    arguments = re.findall(r"[<\[][^>\]]+[>\]](?:\.\.\.)?", re.sub(r"\[OPTIONS\]|\[-- .*\]|<COMMAND>", "", usage))
    return options, sys.maxsize if any(it.endswith("...") for it in arguments) else len(arguments)


def check(program, words):
    """Assert that a program made with clap takes `words`: the options, their values and so many arguments."""
    options, most = understood(*program)
    words, arguments = list(words), []
    while words and (word := words.pop(0)) != "--":
        if not word.startswith("--"):
            arguments.append(word)
            continue
        name, has_value, value = word.partition("=")
        assert name in options, f"{program[-1]} has no option {name}"
        takes_value, choices = options[name]
        value = value if has_value else words.pop(0) if takes_value and words else None
        assert not choices or value is None or value in choices, f"{program[-1]} {name} is none of {choices}: {value}"
    assert len(arguments) <= most, f"{program[-1]} takes no {arguments[most:]}"


def check_shoal(words):
    if words and not words[0].startswith("-"):
        check((*SHOAL, words[0]), words[1:])
    else:
        check(tuple(SHOAL), words)


@functools.cache
def metadata(folder):
    """What cargo knows of the packages in a folder, without a build."""
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"]
    return json.loads(output(*command, f"--manifest-path={folder}/Cargo.toml"))["packages"]


def targets(kind):
    """Names of what cargo builds of one kind."""
    packages = [*metadata(ROOT), *metadata(EXAMPLE)]
    return {it["name"] for package in packages for it in package["targets"] if kind in it["kind"]}


def check_cargo(words):
    words = list(words)
    task = words.pop(0) if words else ""
    if task == "xtask":
        assert XTASK.exists(), f"{XTASK} is missing; `cargo xtask doctor` builds it"
        return check((str(XTASK), *words[:1]), words[1:])
    if task == "nextest":
        assert words.pop(0) == "run"
    assert task in ("", "bench", "build", "doc", "nextest", "run", "test"), (
        f"no task of cargo that is known here: {task}"
    )
    while words and (word := words.pop(0)) != "--":
        if word in TARGETS:
            assert words[0] in targets(TARGETS[word]), f"there is no {TARGETS[word]} {words[0]}"
            words.pop(0)
        elif word in ("-p", "--package"):
            assert words.pop(0) in {package["name"] for package in metadata(ROOT)}
        elif word == "--features":
            assert words.pop(0) in {name for package in metadata(ROOT) for name in package["features"]}
        else:
            # A word that is not an option chooses tests by their names.
            assert word in FLAGS or not word.startswith("-"), f"cargo {task} {word} is not known here"


def check_pip(words):
    """Assert that files of requirements exist, and that a wheel has the name of the package."""
    assert words[:1] == ["install"], words
    with open(ROOT / "python/pyproject.toml", "rb") as file:
        name = tomllib.load(file)["project"]["name"].replace("-", "_")
    for option, value in zip(words, [*words[1:], ""], strict=True):
        if option == "-r":
            assert any((folder / value).exists() for folder in FOLDERS), f"there is no {value}"
        if option.endswith(".whl"):
            assert re.fullmatch(rf"{name}-\*\w*\.whl", Path(option).name), f"the wheel is called {name}-*.whl"


def check_script(words):
    """Assert that a script's own parser understands its arguments. Nothing else of the script is run."""
    script = next((folder / words[0] for folder in FOLDERS if (folder / words[0]).exists()), None)
    assert script, f"there is no {words[0]}"
    # A reader replaces a capital letter by a number.
    arguments = ["3" if re.fullmatch("[A-Z]", word) else word for word in words[1:]]
    output(sys.executable, Path(__file__).with_name("parse.py"), script, *arguments)


def check_variable(assignment):
    """Assert that the code reads a variable of Shoal."""
    name = assignment.partition("=")[0]
    files = [path for folder in ("src", "tests", "benches") for path in (ROOT / folder).rglob("*.*") if path.suffix in (".rs", ".py")]
    is_read = not name.startswith("SHOAL_") or any(f'"{name}"' in path.read_text(encoding="utf-8") for path in files)
    assert is_read, f"nothing reads {name}"


def check_command(command):
    """Assert that a command would be understood: its program, its options, the files and targets that it names."""
    for assignment in command.variables:
        check_variable(assignment)
    program, words = command.program, list(command.words[1:])
    if program == "cargo":
        check_cargo(words)
    if command.of_shoal is not None:
        check_shoal(command.of_shoal)
    elif program == "pip":
        check_pip(words)
    elif program.startswith("python") and words and words[0].endswith(".py"):
        check_script(words)
    elif program == "alias":
        assert Path(words[0]).name in targets("bin"), f"cargo builds no {words[0]}"
    elif program == "export":
        # The only one that pages use.
        assert words == ["PATH=$PWD/target/release:$PATH"], f"nobody knows here what {words} is for"
    elif program == "cd":
        assert (ROOT / words[0]).is_dir(), f"there is no folder {words[0]}"
    else:
        assert program in ("cargo", "tensorboard"), f"nobody knows here what {program} is"
