"""A bar of progress: what is done, how long it has taken, and what is left where that is known."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress as Bar,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text


class _Count(MofNCompleteColumn):
    """So many of so many; nothing where no one knows of how many."""

    def render(self, task: Task) -> Text:
        return Text("") if task.total is None else super().render(task)


class _RemainingTime(TimeRemainingColumn):
    """The time that is left; nothing where no one can know it yet."""

    def render(self, task: Task) -> Text:
        is_known = task.total is not None and task.time_remaining is not None
        return super().render(task).append(" left") if is_known else Text("")


def bar() -> Bar:
    """Return a bar on standard error, which is gone once all is done."""
    return Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        _Count(),
        TimeElapsedColumn(),
        _RemainingTime(),
        console=Console(stderr=True),
        transient=True,
    )
