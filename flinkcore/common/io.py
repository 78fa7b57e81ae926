"""PyFlink's ``pyflink.common.io`` names: formats that read input by themselves."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, BinaryIO

from flinkcore.common.typeinfo import TypeInformation


class InputFormat(ABC):
    """Reads the elements of files, for ``env.create_input``.

    Attributes
    ----------
    path : str
        Path of a file or directory.

    Notes
    -----
    Follows ``pyflink.common.io.InputFormat``.
    """

    path: str

    @abstractmethod
    def read(self, file: BinaryIO, name: str) -> Iterator[Any]:
        """Yield the elements of a file; `name` is for messages."""

    @abstractmethod
    def get_produced_type(self) -> TypeInformation:
        """Return the type of the elements."""
