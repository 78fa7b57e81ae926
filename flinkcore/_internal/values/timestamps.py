"""The ends of the 64-bit millisecond time axis."""

MIN_TIMESTAMP = -(2**63)
"""Java's ``Long.MIN_VALUE``: "no timestamp" on an element, "none yet" as a watermark."""

MAX_TIMESTAMP = 2**63 - 1
"""Java's ``Long.MAX_VALUE``: the watermark after which nothing can come (``Watermark.MAX_WATERMARK``)."""
