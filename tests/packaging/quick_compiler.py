"""A compiler for tests that ask whether something builds, and not how fast it is.

`quick_compiler.py COMPILER CACHE CHECKOUT ...` does not optimize, which is most of a compiler's time, and compiles the
same source with the same options once: another environment of the same Python has the same headers in other folders.
Of the sources that the checkout has compiled, it compiles only `COMPILED`; the other modules are those of the checkout.
"""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

COMPILED = ("_cyutility", "key_dictionary", "timers")
"""Modules that are compiled in any case; the other ones, too, if the checkout is a folder without modules."""

OF_CHECKOUT = b"The checkout has the module."
"""The object of a source that is not compiled."""


def module_of_checkout(checkout: Path, source: Path) -> Path | None:
    """Return the module that the checkout has compiled of the same source."""
    translated = checkout / "build" / "cython" / "_native" / source.name
    modules = [*(checkout / "flinkcore" / "_native").glob(f"{source.stem}.*.so")]
    if source.stem in COMPILED or len(modules) != 1 or not translated.exists():
        return None
    is_old = modules[0].stat().st_mtime < translated.stat().st_mtime
    return None if is_old or translated.read_bytes() != source.read_bytes() else modules[0]


def main(compiler: str, cache: Path, checkout: Path, arguments: list[str]) -> int:
    command = [*shlex.split(compiler), *arguments, "-O0"]
    to = Path(arguments[arguments.index("-o") + 1])
    if "-c" not in arguments:
        objects = [Path(argument) for argument in arguments if argument.endswith(".o")]
        if [each.read_bytes() for each in objects] != [OF_CHECKOUT]:
            return subprocess.run(command, check=False).returncode
        shutil.copy(checkout / "flinkcore" / "_native" / to.name, to)
        return 0
    source = Path(arguments[arguments.index("-c") + 1])
    if module_of_checkout(checkout, source) is not None:
        to.write_bytes(OF_CHECKOUT)
        return 0
    options = [each for each in arguments if not each.startswith("-I") and each != str(to)]
    made = cache / hashlib.sha256(repr(options).encode() + source.read_bytes()).hexdigest()
    if not made.exists():
        status = subprocess.run(command, check=False).returncode
        if status != 0:
            return status
        written = made.with_suffix(f".{os.getpid()}")
        shutil.copy(to, written)
        written.rename(made)
    shutil.copy(made, to)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:]))
