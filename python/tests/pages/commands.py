"""Splits lines of a shell into commands."""

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePath

ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=")
#: Programs that cargo builds, which are subcommands of `shoal` too.
SUBCOMMANDS = {"attach", "dashboard", "evaluate", "inspect"}
#: Subcommands of `supervisor`. Without one of them it trains.
OF_SUPERVISOR = {"adopt", "doctor", "resume"}


@dataclass(frozen=True)
class Command:
    """The words of a command, and the variables set before it."""

    words: tuple[str, ...]
    variables: tuple[str, ...] = ()

    @property
    def program(self):
        return PurePath(self.words[0]).name

    @property
    def of_shoal(self):
        """The words after `shoal` if this is one of its commands, under whatever name; else `None`."""
        program, rest = self.program, list(self.words[1:])
        if program == "cargo" and rest[:1] == ["run"] and "--bin" in rest:
            name, arguments = rest[rest.index("--bin") + 1], rest[rest.index("--") + 1 :] if "--" in rest else []
            return Command((name, *arguments)).of_shoal
        if program == "cargo" and rest[:2] == ["xtask", "train"]:
            arguments = [word for word in rest[2:] if word != "--"]
            return ["train", *(arguments or ["configs/cartpole_dqn.toml"])]
        if program == "supervisor":
            return rest if rest[:1] and rest[0] in OF_SUPERVISOR else ["train", *rest]
        if program in SUBCOMMANDS:
            return [program, *rest]
        if program.startswith("python") and rest[:2] == ["-m", "shoal"]:
            return rest[2:]
        # `own` is what docs/own.md makes: `shoal` that knows more names.
        return rest if program in ("shoal", "own") else None


def commands(text):
    """The commands of a block or of a span of prose, in order, including those of pipes."""
    found = []
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&")
        lexer.whitespace_split = True
        words = []
        for word in [*lexer, "&&"]:
            if word not in ("|", "&&"):
                words.append(word)
            elif words:
                of_variables = next((i for i, it in enumerate(words) if not ASSIGNMENT.match(it)), len(words) - 1)
                found.append(Command(tuple(words[of_variables:]), tuple(words[:of_variables])))
                words = []
    return found
