"""Functions that Flink's planner knows and that do not run here, with the reason."""

from __future__ import annotations

from typing import Final

OF_THE_CLOCK: Final = "the time of the machine is not that of the log: take the rowtime"
_CHANCE: Final = "it returns something else each time"
_PATTERN: Final = (
    "MATCH_RECOGNIZE has FIRST, LAST and FINAL, MATCH_ROWTIME in measures, and nothing else of its own"
)
_BITMAPS: Final = "the type BITMAP is not supported"
_VARIANTS: Final = "the type VARIANT is not supported: JSON_VALUE and JSON_QUERY read texts"
_STRUCTURES: Final = "structured types are not supported: write ROW"

REFUSED_FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP", "LOCALTIME"),
            *("LOCALTIMESTAMP", "NOW"),
        ),
        OF_THE_CLOCK,
    ),
    **dict.fromkeys(("RAND", "RAND_INTEGER", "UUID"), _CHANCE),
    **dict.fromkeys(
        (
            "CLASSIFIER",
            "FINAL",
            "FIRST",
            "LAST",
            "MATCH_PROCTIME",
            "MATCH_ROWTIME",
            "NEXT",
            "PREV",
            "RUNNING",
        ),
        _PATTERN,
    ),
    **dict.fromkeys(
        (
            *("BITMAP_AND", "BITMAP_ANDNOT", "BITMAP_BUILD", "BITMAP_CARDINALITY", "BITMAP_FROM_BYTES"),
            *("BITMAP_OR", "BITMAP_TO_ARRAY", "BITMAP_TO_BYTES", "BITMAP_TO_STRING", "BITMAP_XOR"),
        ),
        _BITMAPS,
    ),
    **dict.fromkeys(("PARSE_JSON", "TRY_PARSE_JSON"), _VARIANTS),
    **dict.fromkeys(("OBJECT_OF", "OBJECT_UPDATE"), _STRUCTURES),
    "PROCTIME": "processing time is not supported: declare the time of the events with WATERMARK FOR",
    "CURRENT_WATERMARK": "it depends on when rows arrive: compare the rowtime with the times of windows",
    "CURRENT_DATABASE": "a plan has no catalog",
    "STREAMRECORD_TIMESTAMP": "take the rowtime",
}
"""The reason why a function does not run, or what to write instead, by its name in plans."""
