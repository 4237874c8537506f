"""The domain: declared public facts about the records."""

from typing import TYPE_CHECKING

from dpcore.siblings import lazy_names

if TYPE_CHECKING:
    from dpcore.domain.classes import Classes as Classes
    from dpcore.domain.columns import (
        Categories as Categories,
        Dates as Dates,
        Range as Range,
        Texts as Texts,
    )
    from dpcore.domain.domain import Domain as Domain, People as People
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Categories": "domain.columns",
            "Classes": "domain.classes",
            "Dates": "domain.columns",
            "Domain": "domain.domain",
            "People": "domain.domain",
            "Range": "domain.columns",
            "Texts": "domain.columns",
        },
    )
