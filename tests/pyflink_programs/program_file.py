"""Loads programs, as they are."""

import ast
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).parent / "programs"
RECORDED = Path(__file__).parent / "recorded"


def names() -> Iterator[str]:
    """Yield the names of all programs, in order."""
    return (path.stem for path in sorted(FOLDER.glob("*.py")))


def source(name: str) -> str:
    return (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def sha256(name: str) -> str:
    """Return the digest of a program, by which a record knows what it is of."""
    return hashlib.sha256(source(name).encode()).hexdigest()


def load(name: str) -> ModuleType:
    """Return the module that a program makes; it is known to `sys.modules`, so that it can be pickled."""
    module = ModuleType(f"pyflink_programs_{name}")
    module.__file__ = str(FOLDER / f"{name}.py")
    sys.modules[module.__name__] = module
    exec(compile(source(name), module.__file__, "exec"), module.__dict__)
    return module


def constants(text: str) -> dict[str, Any]:
    """Return the constants that say how to run a program.

    ORDERED (True unless given), PACED (False), MODE (thread), CLOCK (arrival).
    """
    return {
        statement.targets[0].id: statement.value.value
        for statement in ast.parse(text).body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and isinstance(statement.value, ast.Constant)
    }


def clock(name: str) -> Any:
    """Return the clock of a program: `system` if it sleeps, and its results depend on that."""
    return constants(source(name)).get("CLOCK", "arrival")
