"""From the path of keys that an error carries to file, line and column: done once, by whoever read
the file.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dpcore.errors import DpcoreError, ParameterError, SpecError
from dpcore.yaml.located import Node


@contextmanager
def locate_errors(node: Node) -> Iterator[None]:
    """What is raised inside about a key of `node` says where the key stands in its file."""
    try:
        yield
    except DpcoreError as error:
        place(error, node)
        raise


def place(error: DpcoreError, node: Node) -> None:
    """Give an error without a place that of its path: of the nearest key that the file has.

    An error about no key is about the whole file if it says that the file is wrong; one about a
    parameter that the file does not give is not about the file.
    """
    about = bool(error.steps or error.key) or isinstance(error, SpecError)
    foreign = isinstance(error, ParameterError) and reached(node, [str(error.field)]) is node
    if error.place is not None or not about or (foreign and not error.steps):
        return
    # An unknown key is itself at fault, so point at the key and not at the mapping.
    if error.key is not None:
        error.place = reached(node, error.steps).where_key(error.key)
    else:
        steps = error.steps if error.field is None else (*error.steps, error.field)
        error.place = reached(node, steps).where


def reached(node: Node, steps: Sequence[str]) -> Node:
    """The node at a path of keys, as far as it leads."""
    for step in steps:
        inner = node.value
        if isinstance(inner, dict) and step in inner:
            node = inner[step]
        elif isinstance(inner, list) and step.isdecimal() and int(step) < len(inner):
            node = inner[int(step)]
        else:
            break
    return node
