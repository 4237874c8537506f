"""Engines that operators can name: opened on this machine only, and put to their laws."""

import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from dpcore.encoding.tables import project_table
from dpcore.private.engines.base import Engine
from dpcore.private.engines.choice import EngineChoice
from dpcore.source import Location
from dpcore_attacks.laws.engines.engines import CUTS, DOMAIN, SAME_BITS, Trial, engine_verdicts
from dpcore_attacks.laws.engines.stored import stored_verdicts
from dpcore_attacks.laws.law import Outcome, Verdict


def choice_verdicts(
    kind: type[EngineChoice], name: str, seed: int = 3, kinds: Iterable[type[Location]] = ()
) -> list[Verdict]:
    """Return the laws of the engine that an operator's choice opens, on this machine only.

    An engine that takes parts in memory gets them. One that has to be given a plan gets files.

    Args:
        kinds: Of source, also the core's own, whose files it may be able to add.
    """
    refusals = []
    with tempfile.TemporaryDirectory() as folder:
        # Processes take seconds to start: one way to cut the records is enough for them.
        for workers, cuts in ((None, CUTS), (1, CUTS[2:3])):
            wants_plan = False
            try:
                make = partial(kind(workers=workers).opened, Path(folder))
                with make() as engine:
                    wants_plan = type(engine).accept is not Engine.accept
                    engine.load(
                        Trial(make, None, seed, cuts).parts((9,)), partial(project_table, DOMAIN)
                    )
            except Exception as error:
                if wants_plan:
                    return stored_verdicts(make, kinds, name, seed)
                refusals.append(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
                continue
            return engine_verdicts(make, name, seed=seed, cuts=cuts)
    return [Verdict(SAME_BITS, name, Outcome.NOT_TESTED, "; ".join(refusals))]
