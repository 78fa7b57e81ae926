"""The name of a side output."""

from dataclasses import dataclass, field

from flinkcore.common.schemas import Schema, is_schema
from flinkcore.errors import ConfigurationError


@dataclass(frozen=True)
class OutputTag:
    """Names a side output of an operator; tags with equal ids are the same tag.

    Parameters
    ----------
    tag_id : str
        Not empty.
    type_info : pyarrow.Schema, optional
        Columns of what a process function emits to it. Rows of a columnar side output (late or rejected ones)
        bring their own.

    Raises
    ------
    ConfigurationError
        If the id is empty or not a string, or the type is no schema.

    Notes
    -----
    Follows ``pyflink.datastream.OutputTag``, whose type is a ``TypeInformation``.

    Examples
    --------
    >>> OutputTag("late") == OutputTag("late")
    True
    """

    tag_id: str
    type_info: Schema = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tag_id, str) or not self.tag_id:
            raise ConfigurationError(f"OutputTag needs a string that is not empty, not {self.tag_id!r}")
        if self.type_info is not None and not is_schema(self.type_info):
            raise ConfigurationError(
                f"the type of OutputTag({self.tag_id!r}) is a pyarrow.Schema, such as pyarrow.schema({{'user': "
                f"pyarrow.string()}}), not {self.type_info!r}"
            )
