"""A declared type of values, as small as one can be."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Declared:
    """Accepts the instances of a class; a bool is no int."""

    python_type: type

    def accepts(self, value: object) -> bool:
        return type(value) is self.python_type

    def __str__(self) -> str:
        return self.python_type.__name__.upper()
