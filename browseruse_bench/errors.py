"""Every failure is attributed to one boundary, and says what, where and what next.

    BenchError                  exit 1
    ├── ConfigError             exit 2    a flag, a name or a configuration is wrong
    ├── DataError               exit 3    a file is wrong; `problems` lists all that is
    ├── IncompleteError         exit 4    the work ended, but some of it has no result
    ├── BudgetError             exit 5    a budget was reached
    ├── BrowserError            exit 1    a browser could not be found, started or reached
    ├── SiteError               exit 1    a site that a benchmark brings along failed
    ├── StoreError              exit 1    a file of a run could not be written
    ├── AgentError              exit 1    an agent or its worker broke its contract
    ├── ModelError              exit 1    a model provider call failed
    ├── EvaluatorError          exit 1    a benchmark's own evaluator failed
    ├── GraderError             exit 1    our grader failed
    └── StageError              exit 1    a stage of the factory failed

Extension code raises plain Python; `boundary` wraps it once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from typing import ClassVar


class BenchError(Exception):
    """Base of every error that names its boundary."""

    exit_status: ClassVar[int] = 1


class ConfigError(BenchError):
    """A flag, a name or a configuration is wrong."""

    exit_status = 2


class DataError(BenchError):
    """A file is wrong; all of its problems are listed, not only the first."""

    exit_status = 3

    def __init__(self, problems: str | Sequence[str]) -> None:
        """Keep the problems as a tuple of lines, each with its place."""
        self.problems = (problems,) if isinstance(problems, str) else tuple(problems)
        super().__init__("\n".join(self.problems))


class IncompleteError(BenchError):
    """The work ended, but some of it has no result."""

    exit_status = 4


class BudgetError(BenchError):
    """A budget was reached; what was settled before is kept."""

    exit_status = 5


class BrowserError(BenchError):
    """A browser could not be found, started or reached."""


class SiteError(BenchError):
    """A site that a benchmark brings along failed."""


class StoreError(BenchError):
    """A file of a run could not be written (a full disk, say); what settled before is kept."""


class AgentError(BenchError):
    """An agent or its worker broke its contract."""


class ModelError(BenchError):
    """A model provider call failed."""


class EvaluatorError(BenchError):
    """A benchmark's own evaluator raised, hung or returned something malformed."""


class GraderError(BenchError):
    """Our own grader failed."""


class StageError(BenchError):
    """A stage of the factory failed."""


@contextlib.contextmanager
def boundary(kind: type[BenchError], what: str) -> Generator[None]:
    """Attribute an unattributed error to `kind`; let an attributed one through."""
    try:
        yield
    except BenchError:
        raise
    except TimeoutError as error:
        raise kind(f"{what}: timed out") from error
    except Exception as error:
        raise kind(f"{what}: {type(error).__name__}: {error}") from error
