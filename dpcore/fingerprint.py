"""Sameness: when two frozen public objects count as one, for whatever is computed from them."""

import hashlib
import pickle


def fingerprint(*parts: object) -> tuple[bytes, ...]:
    """A digest of each part's serialised fields; empty if one of them cannot be serialised.

    Equal fingerprints mean equal types and fields, compared or not in `==`, to the last byte. Equal
    objects may have different ones, so that a doubt costs time and never a stale value.
    """
    try:
        # `==` may skip fields; what pickle writes does not.
        return tuple(hashlib.sha256(pickle.dumps(part)).digest() for part in parts)
    except Exception:  # whatever a field of a third party's class raises
        return ()
