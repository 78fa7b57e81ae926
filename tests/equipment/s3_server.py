"""A server that speaks the protocol of S3, in a process of its own, and a network in front of it that fails."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest
from pyarrow import fs

_SERVER = """
import logging, sys
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
SECRET = "a-secret-that-nobody-may-read"
"""The secret key; no text that a user sees has it."""


@dataclass(frozen=True)
class S3Server:
    """A running server.

    Attributes
    ----------
    port : int
        Port on this machine.
    """

    port: int

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[S3Server]:
        """Start a server, and end it when the block ends; skip the test where there is none."""
        pytest.importorskip("moto")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        with subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                yield cls(int(process.stdout.readline()))
            finally:
                process.stdin.close()
                process.wait(30)

    @property
    def endpoint(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def files(self) -> fs.S3FileSystem:
        """Return the file system of the server, by which a test looks at what is there."""
        return fs.S3FileSystem(
            access_key="test",
            secret_key=SECRET,
            region="us-east-1",
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            allow_bucket_creation=True,
        )

    def bucket(self, name: str) -> str:
        """Create a bucket and return its URI."""
        self.files().create_dir(name)
        return f"s3://{name}"

    def names(self, directory: str) -> list[str]:
        """Return the files below a directory, by their paths in it."""
        base = directory.partition("://")[2]
        found = self.files().get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
        return sorted(each.path[len(base) + 1 :] for each in found if each.is_file)

    def environment(self, endpoint: str | None = None) -> dict[str, str]:
        """Return the variables of the environment by which programs reach the server."""
        return {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def check_keys(self, after: int = 0) -> None:
        """Let the server refuse keys that no user has, after a number of further requests."""
        request = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth", str(after).encode(), {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()

    def accept_any_key(self) -> None:
        """Let the server accept all keys again."""
        request = urllib.request.Request(
            f"{self.endpoint}/moto-api/reset-auth", b"inf", {"Content-Type": "text/plain"}
        )
        urllib.request.urlopen(request).close()


class BreakingNetwork:
    """A network in front of a server that breaks each connection over which it has sent so many bytes.

    Parameters
    ----------
    server : S3Server
    """

    def __init__(self, server: S3Server) -> None:
        self._server = server
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.most_bytes: int | None = None
        """Bytes of the server that a connection lets through; None for all."""
        self.most_broken: int | None = None
        """Connections that are broken; None for all."""
        self.broken = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Refuse connections from now on."""
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                server = socket.create_connection(("127.0.0.1", self._server.port))
                threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _breaks(self, sent: int) -> bool:
        if self.most_bytes is None or sent <= self.most_bytes:
            return False
        return self.most_broken is None or self.broken < self.most_broken

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        sent = 0
        with suppress(OSError):
            while data := source.recv(1 << 14):
                if is_answer and self._breaks(sent + len(data)):
                    target.sendall(data[: max(0, (self.most_bytes or 0) - sent)])
                    self.broken += 1
                    break
                target.sendall(data)
                sent += len(data)
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
