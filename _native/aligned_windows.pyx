"""Tumbling, sliding and cumulate windows: what they may be, and the kernels of them."""

from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t

from flinkcore.errors import ConfigurationError

from flinkcore._native.window_kernel cimport window_kernel


cdef AlignedWindows checked_windows(
    int64_t size, int64_t slide, int64_t offset, bint cumulative, int64_t allowed_lateness, int64_t most_windows
) except *:
    cdef AlignedWindows windows
    if size <= 0 or slide <= 0 or allowed_lateness < 0:
        raise ConfigurationError(
            f"window size {size} ms and slide {slide} ms must be positive, allowed lateness {allowed_lateness} ms not negative"
        )
    if max(size, slide, abs(offset)) > 2**60:  # the sums of two such times do not overflow
        raise ConfigurationError(f"window size {size} ms, slide {slide} ms and offset {offset} ms must be below 2**60")
    if cumulative and size % slide:
        raise ConfigurationError(f"windows grow by {slide} ms, of which the largest size, {size} ms, is no multiple")
    if (size + slide - 1) // slide > most_windows:
        raise ConfigurationError(
            f"a {'step' if cumulative else 'slide'} of {slide} ms puts a row into up to {(size + slide - 1) // slide} windows "
            f"of {size} ms; at most {most_windows} are supported: choose a longer one"
        )
    windows.size = size
    windows.slide = slide
    windows.offset = offset
    windows.cumulative = cumulative
    return windows


cdef WindowKernel aligned_kernel(
    str name,
    size_t state_size,
    const WindowVerbs* verbs,
    const AlignedWindows* windows,
    int64_t allowed_lateness,
    int64_t reach,
):
    return window_kernel(
        name,
        state_size,
        verbs,
        allowed_lateness,
        INT64_MIN + max(windows.size, windows.slide, reach) * 2 + max(windows.offset, 0),
        INT64_MAX - max(windows.size, reach) * 2 - abs(windows.offset),
    )
