from typing import final

@final
class WindowKernel:
    @property
    def name(self) -> str: ...
    @property
    def lowest_timestamp(self) -> int: ...
    @property
    def highest_timestamp(self) -> int: ...
