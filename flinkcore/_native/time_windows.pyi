from flinkcore._native.window_operator import WindowKernel

def time_windows(
    *,
    size: int,
    slide: int,
    offset: int,
    allowed_lateness: int,
    cumulative: bool = ...,
    purges: bool = ...,
) -> WindowKernel: ...
def sliced_windows(
    *, size: int, slide: int, offset: int, allowed_lateness: int, cumulative: bool = ...
) -> WindowKernel: ...
