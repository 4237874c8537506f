"""People: which records are one person's, and how many of them a run uses."""

import attrs

from dpcore.adjacency import Adjacency
from dpcore.checks import is_integer, need_field
from dpcore.errors import need

ID = "a person's id, a text or a whole number"


@attrs.frozen(kw_only=True)
class People:
    """A column that says whose a record is. The unit of privacy is then a person.

    A person is all records with one id, wherever they stand. Of each person at most `records` are
    used, chosen in secret once a run (`dpcore.private.bounding`). A record without an id belongs to
    nobody: it is refused, or left out where records are projected into the domain.

    Args:
        column: Its name; no feature and no target.
        records: k >= 1.
    """

    column: str
    records: int

    def __attrs_post_init__(self) -> None:
        need_field(
            isinstance(self.column, str) and self.column,
            self,
            "column",
            "the name of a column",
            owner="people",
        )
        # A bool is an int to Python, and no number of records.
        need_field(is_integer(self.records), self, "records", "an integer >= 1", owner="people")

    def relation(self, adjacency: Adjacency) -> Adjacency:
        """The same relation about these persons.

        Raises:
            ParameterError: it is neither add/remove nor replace-one.
        """
        return adjacency.of_persons(self.records)

    @property
    def premise(self) -> str:
        """What one person is, as a guarantee says it."""
        return (
            f"a person is all records with one id in column {self.column!r}, letter by letter; of "
            f"each at most {self.records}, chosen in secret for the whole run, are used"
        )

    def describe(self) -> str:
        """The rule an entry must meet."""
        return ID


def require_unit(people: People | None, adjacency: Adjacency) -> None:
    """Persons are declared exactly where they are the unit, with as many records each.

    No table has places that hold nobody: what is said of them is for bridges alone.

    Raises:
        ParameterError: they are not.
    """
    name = str(adjacency)
    # A claim about one unit says nothing of another: data and relation must be about the same.
    need(
        adjacency.unit != "place",
        "data",
        "add_remove or replace_one: no record of a table can be blank",
        "adjacency",
        name,
        "adjacency",
    )
    need(
        people is not None or not adjacency.of_person,
        name,
        "the column that tells persons apart",
        "people",
        None,
        "data.domain",
    )
    relation = adjacency if people is None else people.relation(adjacency)
    need(
        adjacency == relation,
        "data.domain.people",
        f"a relation about persons ({relation})",
        "adjacency",
        name,
        "adjacency",
    )
