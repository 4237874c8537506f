"""Spark: the records of a run in a DataFrame of blocks, which Spark's workers read and add.

Out go the places of parts, pickled tasks and keyed words that select records; back come counts and
exact totals. Workers read the parts themselves, so that every worker needs the files under the same
names. All of that is private: anyone who sees the cluster's messages is left of the release
boundary.

Only DataFrames and Arrow batches are used, so that a session of Spark Connect serves as well.
"""

import contextlib
import math
import pickle
import secrets
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import attrs

from dpcore.errors import EngineError, RequestError, need
from dpcore.private.engines.base import Encode, Task, Workload
from dpcore.records import Folded
from dpcore.source import Part
from dpcore_engines.bundle import Contents, Failure
from dpcore_engines.cluster import (
    ClusterEngine,
    cut_parts,
    distributions,
    require_same_versions,
    reword_errors,
    versions,
)
from dpcore_engines.spark_tasks import (
    ANSWERS,
    BLOCKS,
    PlannedQuery,
    Recipes,
    Total,
    add_blocks,
    add_totals,
    merge,
    read_blocks,
    report_versions,
)

ENCRYPTION = "spark.io.encryption.enabled"
_MOST = 2000  # partitions: a task of Spark costs some milliseconds
_FEW = 8  # totals that come here one by one, and workers that are asked for versions
_OPENED = "the cluster failed after records were opened"
_SILENT = (
    "Spark does not answer, or a worker cannot import dpcore_engines: install what is installed "
    "here there; no record was opened"
)


@attrs.frozen(eq=False, repr=False, slots=False)
class Spark(ClusterEngine):
    """Records in a DataFrame that Spark's workers keep, in memory and in encrypted files.

    A worker that is lost takes its blocks along: another one reads the parts again, and totals have
    the same bits. A sealed run is refused.

    Args:
        session: A `SparkSession`, of Spark Connect too. It is the caller's to stop.
    """

    session: Any

    def ready(self) -> None:
        """Compare versions with those of some workers; every task compares them again.

        Raises:
            RequestError: no worker answers, one has other versions, or files are not encrypted.
        """
        own_versions = versions(distributions())
        require_same_versions(own_versions, ())
        with reword_errors(_SILENT, RequestError):
            encryption = self.session.conf.get(ENCRYPTION, "false")
        need(
            encryption == "true",
            RequestError,
            f"Spark would write blocks of records to files: start its session with {ENCRYPTION}",
        )
        with reword_errors(_SILENT, RequestError):
            rows = self._collect(
                self._map(_FEW, partial(report_versions, distributions()), ANSWERS)
            )
        require_same_versions(own_versions, [_loaded(row) for row in rows])

    def accept(self, workload: Callable[[], Workload]) -> None:
        """Refuse a sealed run, and columns that are read in a zone.

        Raises:
            RequestError: it is sealed: Spark logs what it does, and its intervals show how far it
                is; or there is such a column.
        """
        super().accept(workload)
        need(
            not workload().sealed,
            RequestError,
            "a sealed run is silent, and Spark logs and shows its tasks: use the local engine",
        )

    def _read(
        self, parts: Sequence[Part], encode: Encode
    ) -> tuple[Sequence[Sequence[Part]], Sequence[Contents | Failure]]:
        # A partition reads one part, where there are at most 2,000.
        fractions = cut_parts(parts, _MOST)
        # The key is fresh for each run.
        key, own_versions = secrets.token_bytes(32), versions(distributions())
        pickled = [_pickle(fraction) for fraction in fractions]
        recipes = Recipes(shares=pickled, encode=encode, key=key, versions=own_versions)
        with reword_errors(_OPENED, EngineError):
            blocks = self._map(len(fractions), partial(read_blocks, _pickle(recipes)), BLOCKS)
            self._frames.append(blocks.persist())
            rows = self._collect(blocks.filter("answer is not null").select("bundle", "answer"))
        answers = {row["bundle"]: _loaded(row) for row in rows}
        need(
            sorted(row["bundle"] for row in rows) == [*range(len(fractions))],
            EngineError,
            "Spark did not give every partition once",
        )
        return fractions, [answers[number] for number in range(len(fractions))]

    def _add(self, task: Task) -> Folded | Failure:
        # Workers add some forty totals at a time of 2,000.
        planned_query = PlannedQuery(
            task=task,
            counts=[sum(contents.counts) for contents in self._contents],
            marks=[contents.mark for contents in self._contents],
            versions=versions(distributions()),
        )
        with reword_errors(_OPENED, EngineError):
            totals = self._frames[0].mapInArrow(
                partial(add_blocks, _pickle(planned_query)), ANSWERS
            )
            if len(self._contents) > _FEW:
                # By number: a stage that runs again sends every total to the same task.
                totals = totals.repartition(math.isqrt(len(self._contents)), "bundle")
                totals = totals.mapInArrow(add_totals, ANSWERS)
            answers: list[Total | Failure] = [_loaded(row) for row in self._collect(totals)]
        answer = merge(answers)
        if isinstance(answer, Failure):
            return answer
        # Whatever ran again or twice: no bundle is missing, and none is added twice.
        need(
            answer.bundles == tuple(range(len(self._contents))),
            EngineError,
            "Spark did not add every partition once",
        )
        return answer.sums

    def _forget(self) -> None:
        for frame in self._frames:
            with contextlib.suppress(Exception):  # Spark is gone, and all it held with it
                frame.unpersist(blocking=True)

    def _map(self, count: int, work: Callable[..., Any], columns: str) -> Any:
        """Return a DataFrame of so many partitions, each from its own number."""
        return self.session.range(0, count, 1, count).mapInArrow(work, columns)

    def _collect(self, frame: Any) -> Sequence[Any]:
        """Return all rows; of whatever ends the wait, no task stays behind, for it holds secret
        words.
        """
        tag = f"dpcore-{secrets.token_hex(8)}"
        self.session.addTag(tag)
        try:
            return cast(Sequence[Any], frame.collect())
        except BaseException:
            with contextlib.suppress(Exception):
                self.session.interruptTag(tag)
            raise
        finally:
            self.session.removeTag(tag)


def _pickle(value: object) -> bytes:
    """As bytes: what cannot be read on a worker fails inside a task, which says its type only."""
    from pyspark import cloudpickle

    return cast(bytes, cloudpickle.dumps(value))


def _loaded(row: Any) -> Any:
    """Return a worker's answer."""
    return pickle.loads(row["answer"])  # noqa: S301  # the operator's own process's
