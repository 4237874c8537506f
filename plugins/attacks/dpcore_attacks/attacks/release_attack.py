"""Attack on a priced function release: its own mechanism, at neighbours that a search found."""

import attrs
import numpy as np

from dpcore import Refused, Sensitivity
from dpcore.functions import FunctionLearner, FunctionQuery, Interactive
from dpcore_attacks.attacks.oracle_attack import Breach, Duel, attack
from dpcore_attacks.attacks.question_points import functions_of
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case

_ANYWHERE = 30  # random rows of the domain to ask at, also the records of the pair


@attrs.frozen(kw_only=True)
class ReleaseFinding:
    """What the attack on one release's answers found.

    Args:
        release: Its name. mechanism: Name of its class.
    """

    release: str
    mechanism: str
    breach: Breach

    @property
    def broken(self) -> bool:
        """Whether answers distinguish neighbours  by more than is claimed."""
        return self.breach.broken

    def to_dict(self) -> dict[str, object]:
        """Return the breach as plain numbers and texts, for JSON."""
        return {
            "release": self.release,
            "mechanism": self.mechanism,
            "game": self.breach.game,
            "epsilon": self.breach.epsilon,
            "delta_certified": self.breach.seen,
            "delta_claimed": self.breach.claimed,
            "transcripts": self.breach.transcripts,
            "broken": self.broken,
        }


def attack_release(
    name: str, case: Case, finding: Finding, seed: int = 0, draws: int | None = None
) -> ReleaseFinding | None:
    """Ask the calibrated oracle about both neighbours of a finding's worst pair.

    Args:
        draws: Transcripts of each function in each game; those of the default effort if None.

    Returns:
        None if the release is no function, or no pair is known.
    """
    example, claims = finding.counterexample, case.safe_claims()
    if example is None or isinstance(claims, Refused):
        return None
    query, claim = next(entry for entry in claims if entry[0].name == finding.query)
    mechanism = case.mechanisms.get(query.name)
    if (
        not isinstance(case.learner, FunctionLearner)
        or not isinstance(query, FunctionQuery)
        or not isinstance(mechanism, Interactive)
        or not isinstance(claim, Sensitivity)
    ):
        return None
    before, after = functions_of(case, query, example.pair)
    rows = Rows(case.domain)
    rng = np.random.default_rng(seed)
    random_rows = rows.project(rows.anywhere(rng, _ANYWHERE), np.zeros(_ANYWHERE)).features
    # oracles are asked where the record came to and where it was, and anywhere
    changed = [example.pair.after.features[example.pair.changed]]
    if len(example.pair.before) == len(example.pair.after):
        changed.append(example.pair.before.features[example.pair.changed])
    duel = Duel(
        mechanism=mechanism,
        query=query,
        sensitivity=claim,
        before=before,
        after=after,
        candidates=np.vstack([*changed, random_rows]),
    )
    breach = attack(duel, seed, draws)
    return ReleaseFinding(release=name, mechanism=type(mechanism).__name__, breach=breach)
