"""Functions that Flink's planner knows and that do not run here, with the reason."""

from __future__ import annotations

from typing import Final

_ARRAYS: Final = "functions of arrays are not supported, but ARRAY[...], [n], CARDINALITY and SPLIT are"
_MAPS: Final = "functions of maps are not supported, but MAP[...], [key] and STR_TO_MAP are"
_JSON: Final = (
    "functions of JSON are not supported: read the log with decode={'column': flinkcore.json_values(...)}"
)
_CLOCK: Final = "the time of the machine is not that of the log: take the rowtime"
_CHANCE: Final = "it returns something else each time"
_PATTERN: Final = (
    "MATCH_RECOGNIZE has FIRST, LAST and FINAL, MATCH_ROWTIME in measures, and nothing else of its own"
)
_BITMAPS: Final = "functions of bitmaps are not supported"

REFUSED_FUNCTIONS: Final[dict[str, str]] = {
    **dict.fromkeys(
        (
            *(
                "ARRAY_APPEND",
                "ARRAY_CONCAT",
                "ARRAY_CONTAINS",
                "ARRAY_DISTINCT",
                "ARRAY_EXCEPT",
                "ARRAY_INTERSECT",
            ),
            *("ARRAY_JOIN", "ARRAY_MAX", "ARRAY_MIN", "ARRAY_POSITION", "ARRAY_PREPEND", "ARRAY_REMOVE"),
            *("ARRAY_REVERSE", "ARRAY_SLICE", "ARRAY_SORT", "ARRAY_UNION", "ELEMENT", "ELT", "FIELD"),
        ),
        _ARRAYS,
    ),
    **dict.fromkeys(("MAP_ENTRIES", "MAP_FROM_ARRAYS", "MAP_KEYS", "MAP_UNION", "MAP_VALUES"), _MAPS),
    **dict.fromkeys(
        (
            *(
                "IS JSON",
                "JSON_ARRAY",
                "JSON_EXISTS",
                "JSON_OBJECT",
                "JSON_QUERY",
                "JSON_QUOTE",
                "JSON_STRING",
            ),
            *("JSON_UNQUOTE", "JSON_VALUE", "JSON_LENGTH", "PARSE_JSON", "TRY_PARSE_JSON"),
        ),
        _JSON,
    ),
    **dict.fromkeys(
        (
            *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_ROW_TIMESTAMP", "LOCALTIME"),
            *("LOCALTIMESTAMP", "NOW", "PROCTIME", "CURRENT_WATERMARK", "UNIX_TIMESTAMP"),
        ),
        _CLOCK,
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
    **dict.fromkeys(("BITMAP_BUILD", "BITMAP_CARDINALITY", "BITMAP_TO_STRING"), _BITMAPS),
    "CONVERT_TZ": "CAST the time to TIMESTAMP_LTZ, and set table.local-time-zone",
    "DATEDIFF": "write TIMESTAMPDIFF(DAY, a, b)",
    "FROM_UNIXTIME": "write DATE_FORMAT(TO_TIMESTAMP_LTZ(seconds, 0), 'yyyy-MM-dd HH:mm:ss')",
    "DATE_ADD": "write day + INTERVAL '1' DAY",
    "BIN": "no column of a table has such a text: compute it after the results",
    "CONV": "numbers are decimal here",
    "PRINTF": "write CONCAT and CAST",
    "REGEXP_COUNT": "write REGEXP_EXTRACT",
    "REGEXP_EXTRACT_ALL": "write REGEXP_EXTRACT for each group",
    "REGEXP_INSTR": "write REGEXP_EXTRACT",
    "REGEXP_SUBSTR": "write REGEXP_EXTRACT with group 0",
    "SHA2": "write SHA256, SHA384 or SHA512",
    "SOUNDEX": "compute it in the log",
    "TRANSLATE": "write REPLACE for each letter",
    "UNHEX": "write DECODE of a column of bytes",
    "URL_DECODE": "decode the column before",
    "URL_ENCODE": "encode the results",
    "TYPEOF": "the types are in the plan",
    "CURRENT_DATABASE": "a plan has no catalog",
    "STREAMRECORD_TIMESTAMP": "take the rowtime",
}
"""The reason why a function does not run, or what to write instead, by its name in plans."""
