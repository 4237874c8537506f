"""Unary encoding draws noise for the person's own bit too, and sets it to 1 also."""

LIBRARY, VERSION = "pure-ldp", "1.1.2"
# The package imports all of its methods at once.
_HOSTS = [
    *["numpy==1.26.4", "scipy==1.11.4", "pandas==2.2.3", "scikit-learn==1.3.2"],
    *["statsmodels==0.14.2", "xxhash==3.5.0", "bitstring==4.3.1"],
]
PINS = [*_HOSTS, "--no-deps pure-ldp==1.1.2"]
REFERENCE = "https://github.com/Samuel-Maddock/pure-LDP/issues/11"
FIXED = "1.2.0"
FIXED_ENVIRONMENT = "pure-ldp-1.2.0"
FIXED_PINS = [*_HOSTS, "--no-deps pure-ldp==1.2.0"]
CLAIM = {"epsilon": 0.5}
RELATION = "replace_one"
DRAWS = 4000
PAIR = ([0], [1])
CONTROL = "version 1.2.0"


def release(records):
    """What the one person sends, whose value is one of four."""
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    # The client counts values from 1 on unless it is given where each one lies.
    client = UEClient(epsilon=CLAIM["epsilon"], d=4, index_mapper=int)
    return [int(bit) for bit in client.privatise(records[0])]
