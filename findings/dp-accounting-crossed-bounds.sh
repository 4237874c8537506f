#!/usr/bin/env bash
# dp-accounting's pessimistic epsilon lies below its optimistic one at tiny delta.
# An expert would guess an upper and a lower bound that bracket the truth, whatever delta.
# Distributions are composed by a fast Fourier transform, whose rounding is about 1e-16 per point and is
# not bounded. At delta 1e-14, after 10 Poisson-sampled Gaussian steps, the two cross, so one of them is no
# bound. Agencies do ask for deltas below one over the squared population; check both sides there.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install --quiet --no-compile --disable-pip-version-check dp-accounting==0.6.0 numpy==2.0.2 scipy==1.15.3
venv/bin/python - >output <<'PYTHON'
import logging
from importlib.metadata import version

from dp_accounting.pld import privacy_loss_distribution as pld

logging.disable(logging.WARNING)


def epsilon(delta: float, pessimistic: bool) -> float:
    step = pld.from_gaussian_mechanism(
        1 / 1.015024116777393,
        sampling_prob=0.0015977230751478603,
        pessimistic_estimate=pessimistic,
        use_connect_dots=pessimistic,
    )
    return step.self_compose(10).get_epsilon_for_delta(delta)


print("dp-accounting", version("dp-accounting"))
print("Upper and lower bound on epsilon of 10 steps, by delta:")
for delta in (1e-10, 1e-12, 1e-14):
    upper, lower = epsilon(delta, True), epsilon(delta, False)
    print(delta, f"{upper:.4f} {lower:.4f}", "in order" if lower <= upper else "crossed")
PYTHON
cat output
diff - output <<'EXPECTED'
dp-accounting 0.6.0
Upper and lower bound on epsilon of 10 steps, by delta:
1e-10 0.4803 0.4798 in order
1e-12 0.8490 0.8486 in order
1e-14 1.3011 1.3081 crossed
EXPECTED
