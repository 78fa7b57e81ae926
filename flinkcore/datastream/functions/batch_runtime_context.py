"""What a function over batches can ask about where it runs."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from flinkcore.datastream.functions.runtime_context import RuntimeContext

if TYPE_CHECKING:
    from flinkcore.datastream.state.column_state import ColumnState


class BatchRuntimeContext(RuntimeContext):
    """The task that a function over batches runs in, and its state: columns by dense key id."""

    @abstractmethod
    def get_column_state(self, name: str, dtype: Any, default: Any = 0) -> "ColumnState":
        """Return the column of this name, a value per key; to be asked for in `open`.

        Parameters
        ----------
        name : str
        dtype : numpy dtype
            One number, time, fixed text or ``object`` per key.
        default : object
            Value of a key that has none yet.

        Raises
        ------
        ConfigurationError
            If the name is taken, or the type or the default cannot be those of a column.
        LifecycleError
            If the function has been opened already.
        """
