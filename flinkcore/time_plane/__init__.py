"""The first pass: times to watermarks, merged into one timeline. Private."""
