"""Tags of side outputs."""

from dataclasses import dataclass, field

from flinkcore._internal.arrow.schemas import Schema, is_schema
from flinkcore._internal.python.missing_features import WithoutJava
from flinkcore.common.typeinfo import RowTypeInfo, TypeInformation
from flinkcore.errors import ArgumentTypeError, ConfigurationError


@dataclass(frozen=True)
class OutputTag(WithoutJava):
    """Names a side output of an operator; tags with equal ids are the same tag.

    Parameters
    ----------
    tag_id : str
        Not empty.
    type_info : TypeInformation or pyarrow.Schema, optional
        Type of the elements that a function emits to it, any Python object by default; a list of types is a row of
        these. In a columnar job, a schema with the columns that a process function emits; late or rejected rows keep
        their own columns.

    Raises
    ------
    ConfigurationError
        If the id is empty or not a string, or the type is neither a type nor a schema.

    Notes
    -----
    Follows ``pyflink.datastream.OutputTag``.

    Examples
    --------
    >>> OutputTag("late") == OutputTag("late")
    True
    """

    tag_id: str
    type_info: TypeInformation | Schema = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tag_id, str) or not self.tag_id:
            raise ConfigurationError(f"OutputTag needs a string that is not empty, not {self.tag_id!r}")
        if isinstance(self.type_info, list):
            object.__setattr__(self, "type_info", RowTypeInfo(self.type_info))
        elif not (
            self.type_info is None or isinstance(self.type_info, TypeInformation) or is_schema(self.type_info)
        ):
            raise ArgumentTypeError(
                f"the type of OutputTag({self.tag_id!r}) is a type such as Types.STRING(), or a pyarrow.Schema such as "
                f"pyarrow.schema({{'user': pyarrow.string()}}), not {self.type_info!r}"
            )
