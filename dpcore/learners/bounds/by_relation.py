"""ByRelation: one theorem's movements, one for each relation it speaks about."""

import attrs

from dpcore.adjacency import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE, Adjacency


@attrs.frozen(kw_only=True)
class ByRelation:
    """How far a statistic moves at most, by what a neighbour differs in.

    Args:
        add_remove: Where one record comes or goes.
        replace_one: Where one record is replaced by any other.
        replace_label: Where only one label changes; what a replacement moves if left out.
    """

    add_remove: float
    replace_one: float
    replace_label: float | None = None

    def under(self, adjacency: Adjacency) -> tuple[Adjacency, float]:
        """Return the smallest of these relations that covers `adjacency`, and its movement."""
        if ADD_REMOVE.covers(adjacency):
            return ADD_REMOVE, self.add_remove
        if self.replace_label is not None and REPLACE_LABEL.covers(adjacency):
            return REPLACE_LABEL, self.replace_label
        # Every smaller relation is part of replacements, so that their movement covers it.
        return REPLACE_ONE, self.replace_one
