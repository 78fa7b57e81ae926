"""Lengths of time as people read them."""

from typing import Final

_UNITS: Final = (("day", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))


def shown_duration(duration_ms: int, units: int = len(_UNITS)) -> str:
    """Return a length of time in words, cut off after so many of its units.

    Examples
    --------
    >>> shown_duration(97_423_000), shown_duration(97_423_000, 2), shown_duration(-1_500)
    ('1 day 3 h 3 min 43 s', '1 day 3 h', '-1 s 500 ms')
    """
    if duration_ms < 0:
        return f"-{shown_duration(-duration_ms, units)}"
    parts: list[tuple[int, str]] = []
    left = duration_ms
    for name, unit_ms in _UNITS:
        number, left = divmod(left, unit_ms)
        if number or parts or unit_ms == 1:
            parts.append((number, f"{name}s" if name == "day" and number != 1 else name))
    if len(parts) > units:
        parts = parts[:units]
    shown = [f"{number:,} {name}" for number, name in parts if number]
    return " ".join(shown) or "0 ms"


def shown_share(share: float) -> str:
    """Return a share of 1 as a percentage, with two digits, and with as many as it takes to differ from 100 %.

    Examples
    --------
    >>> shown_share(0.00634), shown_share(0.984), shown_share(0.0), shown_share(0.99993)
    ('0.63 %', '98 %', '0 %', '99.99 %')
    """
    percent = 100 * share
    if percent in (0, 100):
        return f"{percent:.0f} %"
    if percent > 99:
        for digits in range(1, 16):
            if f"{percent:.{digits}f}".rstrip("0") != "100.":
                return f"{percent:.{digits}f} %"
    return f"{float(f'{percent:.2g}'):.12g} %"
