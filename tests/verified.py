"""The checker's verdict on what a priced plan would publish, before anything is run."""

import io
import json

import numpy as np
import pytest

from dpcore.published.formats import FORMAT, format_of
from dpcore.published.lock import lock_of


def verdict_on(plan, spec, folder):
    """The verdict on a run of a plan that has published no answer yet."""
    verify = pytest.importorskip("dpcore_verify").verify
    public = folder / "verified" / "public"
    public.mkdir(parents=True)
    guarantee = format_of(FORMAT).guarantee(plan.guarantee)
    (public / "guarantee.json").write_text(json.dumps(guarantee))
    (public / "spec.lock.json").write_bytes(lock_of(spec, plan, plan.randomness).encode())
    content = io.BytesIO()
    np.savez(content)
    (public / "answers.npz").write_bytes(content.getvalue())
    return verify(public.parent)
