"""Which split holds which watermark generator, so that no two share one."""

from typing import Any

from flinkcore.common.watermark_generator import WatermarkGenerator
from flinkcore.errors import ConfigurationError


class HeldGenerators:
    """The generators of a user's supplier that the splits of one source hold.

    A generator that two splits share sees the events of both, and makes events of the one late by those of the other.
    """

    def __init__(self) -> None:
        # The generators are kept, so that none takes the identity of another.
        self._holders: dict[int, tuple[WatermarkGenerator[Any], str]] = {}
        self._identities: dict[str, int] = {}

    def hold(self, generator: WatermarkGenerator[Any], holder: str, supplier: str) -> None:
        """Note who holds a generator from now on.

        Parameters
        ----------
        generator : WatermarkGenerator
        holder, supplier : str
            What messages call them.

        Raises
        ------
        ConfigurationError
            If another holds it already.
        """
        identity = id(generator)
        if identity in self._holders:
            raise ConfigurationError(
                f"{supplier} made the same {type(generator).__name__} for {holder} that {self._holders[identity][1]} "
                "holds, but each needs one of its own: make a new generator at each call, or give for_generator its "
                "class"
            )
        self._holders[identity] = generator, holder
        self._identities[holder] = identity

    def release(self, holder: str) -> None:
        """Forget the generator of a split that has ended, if a supplier made it."""
        identity = self._identities.pop(holder, None)
        if identity is not None:
            del self._holders[identity]
