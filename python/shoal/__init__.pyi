"""Deep reinforcement learning that uses a whole Linux machine, and prioritized replay that processes share."""

from ._native import Batch as Batch
from ._native import Replay as Replay
from ._native import SumTree as SumTree
from ._native import __version__ as __version__
from .errors import CorruptError as CorruptError
from .errors import EmptyError as EmptyError
from .errors import PolicyError as PolicyError
from .errors import RateLimitError as RateLimitError
from .errors import ReplayError as ReplayError
from .errors import RunError as RunError
from .errors import StaleIndexError as StaleIndexError
from .errors import StoppedError as StoppedError
from .metrics import Metrics as Metrics
from .options import Field as Field
from .options import Frames as Frames
from .options import NStep as NStep
from .options import RateLimiter as RateLimiter
from .policies import Evaluation as Evaluation
from .policies import Policy as Policy
from .policies import evaluate as evaluate
from .policies import load as load
from .runs import Run as Run
from .runs import start as start
from .runs import train as train
