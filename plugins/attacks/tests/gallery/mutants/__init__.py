"""Right components, mutated systematically: each of them wrong by one change of its parent.

They measure the conformance suite. A mutant is left out only where it is shown to make no false
claim.
"""

from gallery.mutants.accounts import MUTATED_ACCOUNTANTS
from gallery.mutants.claims import MUTATED_CLAIMS
from gallery.mutants.maps import MUTATED_MAPS
from gallery.mutants.noises import MUTATED_MECHANISMS

MUTANTS = (*MUTATED_CLAIMS, *MUTATED_MECHANISMS, *MUTATED_ACCOUNTANTS, *MUTATED_MAPS)
