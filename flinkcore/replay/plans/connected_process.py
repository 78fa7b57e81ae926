"""What a plan says about a function that processes two streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from flinkcore.datastream.state import MapStateDescriptor
from flinkcore.datastream.transformations import TwoInputFunction
from flinkcore.errors import ConfigurationError, SchemaError
from flinkcore.replay.plans.keyed_operator import UserProcess


@dataclass(frozen=True)
class ConnectedProcess(UserProcess):
    """A function called for the rows of two streams.

    Attributes
    ----------
    function
        Every partition works on a copy.
    is_keyed : bool
        Whether the first stream, and unless it is broadcast the second, has a key; if not, there is one partition.
    broadcast_states : tuple of MapStateDescriptor or None
        Of a second stream that is broadcast; None: it is not.
    """

    function: TwoInputFunction
    is_keyed: bool = True
    broadcast_states: tuple[MapStateDescriptor[Any, Any], ...] | None = None

    @property
    def unites_inputs(self) -> bool:
        """Whether the watermark is that of a union of both streams, and not that of an operator with two inputs."""
        return False

    @property
    def is_broadcast(self) -> bool:
        """Whether all rows of the second stream go to every partition."""
        return self.broadcast_states is not None


def require_alike_keys(
    keys: tuple[tuple[str, ...], tuple[str, ...]], schemas: tuple[pa.Schema, pa.Schema]
) -> None:
    """Check that the keys of two connected streams can be equal.

    Raises
    ------
    ConfigurationError
        If one has more columns.
    SchemaError
        If their types differ.
    """
    if len(keys[0]) != len(keys[1]):
        raise ConfigurationError(
            f"connected streams have keys of {len(keys[0])} and {len(keys[1])} columns ({', '.join(keys[0])}; "
            f"{', '.join(keys[1])}): key both by as many"
        )
    for name1, name2 in zip(*keys, strict=True):
        type1, type2 = schemas[0].field(name1).type, schemas[1].field(name2).type
        if type1 != type2:
            raise SchemaError(
                f"connected streams are keyed by {name1!r}, which is {type1}, and {name2!r}, which is {type2}: no keys "
                f"would be equal; convert one, such as with_columns({name2}=pyarrow.compute.field({name2!r})"
                f".cast({str(type1)!r}))"
            )
