"""SqlChoice: sums on DuckDB or PostgreSQL, by where the records lie."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import final

from dpcore.errors import RequestError, need
from dpcore.private.engines.base import Engine, Workload
from dpcore.private.engines.choice import EngineChoice, require_modules


@final
class SqlChoice(EngineChoice):
    """The server of the source: PostgreSQL's own, or DuckDB in this process for Parquet."""

    def explain(self, workload: Workload) -> tuple[str, ...]:
        """Return every statement of a plan; the types of columns are asked for, and no record."""
        require_modules("sqlglot", "pyarrow")
        from dpcore_engines.sql.engine import Sql

        return Sql(memory=self.memory).explain(workload)

    @contextlib.contextmanager
    def opened(self, spool: Path) -> Iterator[Engine]:
        """An engine that connects when it knows the source.

        Raises:
            RequestError: a scheduler or workers are named, or sqlglot is not installed.
        """
        fits = self.scheduler is None and self.workers is None
        need(fits, RequestError, "the sql engine has no scheduler and no workers: name none")
        require_modules("sqlglot", "pyarrow")
        from dpcore_engines.sql.engine import Sql

        with Sql(spool=spool, memory=self.memory) as engine:
            yield engine
