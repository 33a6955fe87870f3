"""What a run has written of its training, line by line."""

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from .runs import Run

# Seconds between two looks for new lines of a run that goes on.
_POLL_S = 0.2


class Metrics:
    """The lines of `metrics.jsonl`, each a dictionary: iterate over them, or convert them to a table.

    Its length and its items, such as `metrics[-1]`, are those of the lines that are there now.
    """

    def __init__(self, run: "Run", follow: bool) -> None:
        self._run, self._follow = run, follow

    def __len__(self) -> int:
        return len(_texts(self._path))

    def __getitem__(self, index: int | slice) -> Any:
        # The file may be long, so only what is asked for is parsed.
        texts = _texts(self._path)[index]
        return [json.loads(text) for text in texts] if isinstance(index, slice) else json.loads(texts)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        path = self._path
        if not self._follow:
            yield from lines_of(path)
            return
        seen_bytes = 0
        while True:
            goes_on = self._run.is_running
            with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                file.seek(seen_bytes)
                text = file.read()
                whole = text[: text.rfind(b"\n") + 1]
                seen_bytes += len(whole)
                yield from map(json.loads, whole.splitlines())
            if not goes_on:
                return
            self._run._pause(_POLL_S)

    def to_pandas(self) -> "pandas.DataFrame":
        """A `pandas.DataFrame` with one row per line, without those of steps that the run took again after a crash."""
        import pandas

        return pandas.DataFrame(once(self))

    @property
    def _path(self):
        return self._run.folder / "metrics.jsonl"


def lines_of(path):
    """The complete lines of a file that may be missing, or being written, each as a dictionary."""
    return [json.loads(text) for text in _texts(path)]


def once(lines):
    """`lines` without those of steps that the run took again when it was resumed from an earlier checkpoint."""
    kept = []
    for line in lines:
        while kept and kept[-1]["env_steps"] > line["env_steps"]:
            kept.pop()
        kept.append(line)
    return kept


def _texts(path):
    """The complete lines of a file that may be missing, or being written, as bytes."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    return content[: content.rfind(b"\n") + 1].splitlines()
