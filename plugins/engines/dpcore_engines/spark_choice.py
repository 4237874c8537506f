"""SparkChoice: a Spark engine on a running cluster, by its address, or on this machine."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

from dpcore.errors import RequestError, need
from dpcore.private.engines.base import Engine
from dpcore.private.engines.choice import EngineChoice, require_modules
from dpcore_engines.cluster import reword_errors
from dpcore_engines.spark import ENCRYPTION, Spark

_LEAST = 1_500_000_000  # bytes: half for Java, and two workers of Python
_OWN = {
    ENCRYPTION: "true",
    "spark.log.level": "OFF",
    "spark.ui.showConsoleProgress": "false",
}
_ONLY = {
    # No one else of this machine gets a page, an address or a task of the session.
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
}


@final
class SparkChoice(EngineChoice):
    """A session on a running cluster, or processes of this machine for the time of the run.

    The session of a cluster is an application of its own there, and a session of Spark Connect
    (`sc://`) is its server's, which must encrypt the files of its workers.
    """

    @contextlib.contextmanager
    def opened(self, spool: Path) -> Iterator[Engine]:
        """A `Spark` engine whose session is stopped at the end.

        Raises:
            RequestError: neither or both of an address and a number of workers, too little memory,
                no Spark here, or no one answers.
        """
        need(
            (self.scheduler is None) != (self.workers is None),
            RequestError,
            "spark needs the address of a master or of Spark Connect (--scheduler), or a number of "
            "workers here (--local-cluster)",
        )
        need(
            self.memory is None or self.workers is None or self.memory >= _LEAST,
            RequestError,
            f"spark needs --memory of at least {_LEAST // 10**6} MB; no record was opened",
        )
        require_modules("pyspark", "pyarrow")
        session = self._session(spool)
        try:
            with Spark(session, spool=spool, is_local=self.scheduler is None) as engine:
                engine.ready()
                yield engine
        finally:
            with contextlib.suppress(Exception):  # it is gone already
                session.stop()

    def _session(self, spool: Path) -> Any:
        from pyspark.sql import SparkSession

        # A session that runs already has settings of its own, which no one would see.
        need(
            SparkSession.getActiveSession() is None,
            RequestError,
            "a Spark session runs in this process: hand over Spark(session)",
        )
        address = self.scheduler or f"local[{self.workers},4]"  # four tries of a task, as elsewhere
        builder, is_connect = SparkSession.builder.appName("dpcore"), address.startswith("sc://")
        refusal = f"no Spark session starts on {address}, which needs Java 17 on this machine"
        if is_connect:
            refusal = f"no server of Spark Connect answers at {address}"
        with reword_errors(f"{refusal}; no record was opened", RequestError):
            # A server of Spark Connect has settings of its own; the engine looks at them.
            builder = builder.remote(address) if is_connect else builder.master(address)
            settings = {} if is_connect else self._settings(spool)
            session = builder.config(map=settings).getOrCreate()
            session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "16")  # of 256 kB
            if self.workers is not None:
                # Its workers run what this process runs, not the first Python of the path.
                session.sparkContext.pythonExec = sys.executable
        return session

    def _settings(self, spool: Path) -> dict[str, str]:
        """Of a session that this process starts."""
        if self.scheduler is not None:
            return _OWN
        settings = {**_OWN, **_ONLY, "spark.local.dir": str(spool)}
        if self.memory is not None:
            # Java gets half: the workers of Python are next to it.
            settings["spark.driver.memory"] = f"{self.memory // 2 // 2**20}m"
        return settings
