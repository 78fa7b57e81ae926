"""How the files of a sink are named."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OutputFileConfig:
    """What the names of files begin and end with.

    Parameters
    ----------
    part_prefix, part_suffix : str

    Notes
    -----
    Follows ``pyflink.datastream.connectors.file_system.OutputFileConfig``.
    """

    part_prefix: str = "part"
    part_suffix: str = ""

    @staticmethod
    def builder() -> OutputFileConfigBuilder:
        """Return a builder."""
        return OutputFileConfigBuilder()

    def get_part_prefix(self) -> str:
        """Return what names begin with."""
        return self.part_prefix

    def get_part_suffix(self) -> str:
        """Return what names end with."""
        return self.part_suffix


class OutputFileConfigBuilder:
    """Says how files are named."""

    def __init__(self) -> None:
        self.part_prefix = "part"
        self.part_suffix = ""

    def with_part_prefix(self, prefix: str) -> OutputFileConfigBuilder:
        """Let names begin with a text."""
        self.part_prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> OutputFileConfigBuilder:
        """Let names end with a text."""
        self.part_suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        """Return the names."""
        return OutputFileConfig(self.part_prefix, self.part_suffix)
