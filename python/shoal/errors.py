"""The exceptions of the package.

Wrong arguments raise `ValueError`, `TypeError`, `IndexError` or `OverflowError`. What the system refuses raises
`OSError` or `MemoryError`.
"""


class ReplayError(Exception):
    """Base class of the errors of a replay that are not about the value or type of an argument."""


class EmptyError(ReplayError):
    """Nothing can be drawn yet: the replay is empty, or all leaves of the tree are zero."""


class StaleIndexError(ReplayError, IndexError):
    """Transitions were overwritten since they were drawn. Nothing was changed."""


class RateLimitError(ReplayError, TimeoutError):
    """The rate limiter, or another thread of this process, held the call back for longer than its timeout."""


class StoppedError(ReplayError):
    """The call can never go on: the replay was stopped or closed, its run has ended, or no process draws any more."""


class CorruptError(ReplayError):
    """A file or a segment is damaged, of another version, or of another shape."""


class RunError(Exception):
    """A run could not be started, or failed. The text is the supervisor's."""


class PolicyError(Exception):
    """A policy could not be loaded or played. The text says why."""
