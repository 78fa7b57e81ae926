"""PyFlink's place for :class:`OutputTag`."""

from flinkcore.common.output_tag import OutputTag

__all__ = ["OutputTag"]
