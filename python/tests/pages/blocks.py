"""The pages of the documentation, the blocks of code in them, and the commands that their prose names."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ["", "docs", "configs", "benches", "python", "examples/*", "python/examples"]
#: Left out: its commands belong to the versions that it describes.
HISTORY = "CHANGELOG.md"
FENCE = re.compile(r"^\s*```(\w*)")
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of code; `line` is that of its fence."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


@functools.cache
def pages():
    """The pages, relative to the root."""
    found = {path for folder in FOLDERS for path in ROOT.glob(f"{folder}/*.md".lstrip("/")) if path.name != HISTORY}
    return sorted(str(path.relative_to(ROOT)) for path in found)


@functools.cache
def parts(page):
    """The blocks of a page, and its other lines with their numbers."""
    blocks, prose, fence = [], [], None
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        found = FENCE.match(line)
        if fence is None and found:
            fence, code = (number, found[1]), []
        elif fence is None:
            prose.append((number, line))
        elif found:
            # A block in a list is indented with it.
            indentation = min((len(it) - len(it.lstrip()) for it in code if it.strip()), default=0)
            blocks.append(Block(page, *fence, "".join(f"{it[indentation:]}\n" for it in code)))
            fence = None
        else:
            code.append(line)
    return blocks, prose


def blocks(*languages):
    """The blocks of all pages in these languages, or all."""
    return [it for page in pages() for it in parts(page)[0] if not languages or it.language in languages]


def spans(page):
    """The texts in backticks in the prose of a page, with the numbers of their lines."""
    return [(number, span) for number, line in parts(page)[1] for span in SPAN.findall(line)]
