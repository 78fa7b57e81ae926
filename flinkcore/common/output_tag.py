"""The name of a side output."""

from dataclasses import dataclass

from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class OutputTag:
    """Names a side output of an operator; tags with equal ids are the same tag.

    Parameters
    ----------
    tag_id : str
        Not empty.

    Raises
    ------
    ConfigurationError
        If the id is empty or not a string.

    Notes
    -----
    Follows ``pyflink.datastream.OutputTag``. Rows of a columnar side output bring their own Arrow schema, so
    there is no type information to give.

    Examples
    --------
    >>> OutputTag("late") == OutputTag("late")
    True
    """

    tag_id: str

    def __post_init__(self) -> None:
        if not isinstance(self.tag_id, str) or not self.tag_id:
            raise ConfigurationError(f"OutputTag needs a string that is not empty, not {self.tag_id!r}")
