from flinkcore._native.window_calendar import WindowCalendar
from flinkcore._native.window_operator import WindowKernel

def triggered_windows(
    *,
    allowed_lateness: int,
    trigger: str,
    every: int,
    size: int = ...,
    slide: int = ...,
    offset: int = ...,
    cumulative: bool = ...,
    calendar: WindowCalendar | None = ...,
    purges: bool = ...,
) -> WindowKernel: ...
def global_windows(*, trigger: str, every: int = ..., purges: bool = ...) -> WindowKernel: ...
