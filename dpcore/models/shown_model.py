"""`shown_model`: the base of models that notebooks show and draw."""

from dpcore.shown import Drawn


class ShownModel(Drawn):
    """A model that shows what it published; all of it is public."""

    __slots__ = ()
