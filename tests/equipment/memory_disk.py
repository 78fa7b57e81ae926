"""A folder in memory, for tests that write many checkpoints."""

import os
from pathlib import Path
from shutil import disk_usage

_SHARED = Path("/dev/shm")

MEMORY = _SHARED if os.access(_SHARED, os.W_OK) and disk_usage(_SHARED).free >= 1 << 30 else None
"""Where files are synced at once; on a disk thousands of checkpoints wait for that longer than for all else."""
