from flinkcore._native.window_operator import WindowKernel

def triggered_windows(
    *,
    size: int,
    slide: int,
    offset: int,
    allowed_lateness: int,
    trigger: str,
    every: int,
    cumulative: bool = ...,
    purges: bool = ...,
) -> WindowKernel: ...
def global_windows(*, trigger: str, every: int = ..., purges: bool = ...) -> WindowKernel: ...
