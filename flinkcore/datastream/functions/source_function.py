"""The name of sources that PyFlink has in Java only."""

from typing import Any

from flinkcore.errors import UnsupportedOperationError


class SourceFunction:
    """Raises an UnsupportedOperationError when it is made.

    Notes
    -----
    ``pyflink.datastream.functions.SourceFunction`` wraps a Java function, which nothing can run here.
    """

    def __init__(self, source_func: Any = None) -> None:
        raise UnsupportedOperationError(
            f"SourceFunction({source_func!r}) wraps a Java function, which needs a JVM: take env.from_collection(...), "
            "env.from_source(...) with a source of flinkcore.datastream.connectors, or env.from_event_log(...)"
        )
