"""By how much windows of one size are moved, so that not all of them end at once."""

from enum import Enum


class WindowStagger(Enum):
    """How tumbling windows are staggered.

    ``ALIGNED``: not at all. ``RANDOM``: by a random part of their size. ``NATURAL``: by the time of the first
    element after the start of its window, in processing time.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.api.windowing.assigners.WindowStagger``. Deliberate difference: where Flink
    draws one offset for each subtask, each key group has its own here, and a random one depends on the key group
    alone. Thus results do not depend on the number of partitions.
    """

    ALIGNED = "aligned"
    RANDOM = "random"
    NATURAL = "natural"

    def get_stagger_offset(self, current_processing_time: int, size_ms: int, key_group: int) -> int:
        """Return the offset of a key group.

        Parameters
        ----------
        current_processing_time : int
            Of its first element, in ms since the epoch.
        size_ms : int
            Size of the windows in ms.
        key_group : int

        Returns
        -------
        int
            0 up to the size, in ms.
        """
        if self is WindowStagger.RANDOM:
            import random

            return int(random.Random(key_group).random() * size_ms)
        return current_processing_time % size_ms if self is WindowStagger.NATURAL else 0
