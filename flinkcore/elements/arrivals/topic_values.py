"""Elements that a schema makes of the values of a topic's records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from flinkcore.common.serialization import DeserializationSchema
from flinkcore.common.typeinfo import TypeInformation
from flinkcore.datastream.graph.topic_records import OFFSET, VALUE
from flinkcore.errors import DataError, FlinkcoreError, UserCodeError, in_words

LEFT_OUT: Final = object()
"""In place of an element where the schema gives none."""


@dataclass(frozen=True)
class TopicValues:
    """Calls the schema of a topic's values.

    Attributes
    ----------
    topics : str
        The topics in messages.
    deserializer : DeserializationSchema
    converted_to : TypeInformation or None
        Type to which elements are converted; None if they have that of the schema.
    """

    topics: str
    deserializer: DeserializationSchema
    converted_to: TypeInformation | None

    def elements(self, batch: pa.RecordBatch, partitions: Sequence[Any]) -> list[Any]:
        """Return the elements of records, `LEFT_OUT` where the schema leaves one out.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Values and offsets.
        partitions : sequence
            Partition of each record, for messages.

        Raises
        ------
        DataError
            If a value cannot be read; the message names the record.
        UserCodeError
            If the schema fails otherwise.
        """
        deserialize = self.deserializer.deserialize
        convert = None if self.converted_to is None else self.converted_to.conversion()
        elements: list[Any] = []
        for at, value in enumerate(batch.column(VALUE).to_pylist()):
            try:
                if value is None:
                    self._refuse_null()
                element = None if value is None else deserialize(value)
                if element is None:
                    element = LEFT_OUT
                elif convert is not None:
                    element = convert(element)
            except Exception as failure:
                raise self._failed(failure, partitions[at], batch.column(OFFSET)[at].as_py()) from failure
            elements.append(element)
        return elements

    def _refuse_null(self) -> None:
        if not getattr(self.deserializer, "_ignores_errors", False):
            raise DataError(
                f"its value is null, a tombstone, which {type(self.deserializer).__name__} does not read. Let "
                "the schema ignore_parse_errors(), as rows of JSON and CSV can, or take the record out of the dump"
            )

    def _failed(self, failure: Exception, partition: Any, offset: int) -> FlinkcoreError:
        where = f"the record at offset {offset} of partition {partition} of {self.topics}"
        if isinstance(failure, FlinkcoreError):
            return DataError(f"{where}: {failure}", split=partition, position=offset)
        return UserCodeError(
            f"the deserializer {type(self.deserializer).__name__} failed at {where}: {in_words(failure)}"
        )
