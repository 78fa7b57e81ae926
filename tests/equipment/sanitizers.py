"""What tests do otherwise where sanitizers watch the kernels."""

import os
from typing import Final

import pytest

ARE_ON: Final = "ASAN_OPTIONS" in os.environ

no_forks = pytest.mark.skipif(
    ARE_ON,
    reason="a forked child may wait for ever for a lock of the sanitizer, which a thread of its parent had",
)
"""Marks tests that fork a process with threads."""
