"""A compiler for tests that ask whether something builds, and not how fast it is.

`quick_compiler.py COMPILER CACHE ...` does not optimize, which is most of a compiler's time, and compiles the same
source with the same options once: another environment of the same Python has the same headers in other folders.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path


def main(compiler: str, cache: Path, arguments: list[str]) -> int:
    command = [*shlex.split(compiler), *arguments, "-O0"]
    if "-c" not in arguments:
        return subprocess.run(command, check=False).returncode
    to = arguments.index("-o") + 1
    source = Path(arguments[arguments.index("-c") + 1]).read_bytes()
    options = [each for each in (*arguments[:to], *arguments[to + 1 :]) if not each.startswith("-I")]
    made = cache / hashlib.sha256(repr(options).encode() + source).hexdigest()
    if not made.exists():
        status = subprocess.run(command, check=False).returncode
        if status != 0:
            return status
        written = made.with_suffix(f".{os.getpid()}")
        shutil.copy(arguments[to], written)
        written.rename(made)
    shutil.copy(made, arguments[to])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
