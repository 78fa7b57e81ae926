"""Unix domain sockets between the JVM and Python's processes of a local session."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from typing import Final

MOST_PATH_BYTES: Final = 103
"""Most bytes of a socket's path on all systems."""

_NAME_BYTES: Final = len(f"/.{'0' * 36}.sock")
"""Spark gives sockets such names."""


def socket_settings() -> dict[str, str]:
    """Return the settings by which the JVM and Python's workers talk over Unix domain sockets.

    Spark writes the input of a task in several small pieces. Over TCP, the system holds the second one back until the
    first is acknowledged, 40 ms later: a task of a short log took half its time to wait for that.

    They are empty if the directory of temporary files has too long a path for a socket.
    """
    folder = _socket_folder()
    if len(folder.encode()) + _NAME_BYTES > MOST_PATH_BYTES:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": folder,
    }


@cache
def _socket_folder() -> str:
    # Over these sockets Spark asks for no secret, so only the user may enter their folder.
    folder = tempfile.mkdtemp(prefix="spark-sockets-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
