"""Public part: what a copy or a pickle of a result takes along, which is never its private field."""

from functools import partial
from typing import Any, ClassVar

import attrs


class PublicPart:
    """Base of a result of `attrs` with one private field, which copies and pickles leave out."""

    __slots__ = ()

    private: ClassVar[str]
    """The field's name, as an argument; it has a default."""

    def __reduce__(self) -> Any:
        # `copy`, `deepcopy` and every pickler ask here.
        fields = {f.alias: getattr(self, f.name) for f in attrs.fields(type(self))}
        del fields[self.private]
        return partial(type(self), **fields), ()
