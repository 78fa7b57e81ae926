"""A watermark strategy of one operator."""

import copy

from flinkcore.common.watermark_strategy import WatermarkStrategy
from flinkcore.errors import UserCodeError


def copied_strategy(watermark_strategy: WatermarkStrategy) -> WatermarkStrategy:
    """Return a copy, so that operators that share a strategy share no state of its timestamp assigner or supplier.

    Raises
    ------
    UserCodeError
        If the strategy cannot be copied.

    Notes
    -----
    In Flink, each parallel operator gets a strategy of its own from the serialized job.
    """
    try:
        return copy.deepcopy(watermark_strategy)
    except Exception as failure:
        raise UserCodeError(
            f"the strategy cannot be copied, as it must be so that no two operators share the state of its "
            f"assigner or supplier: {watermark_strategy}. Give what cannot be copied a __deepcopy__"
        ) from failure
