"""Writes which names PyFlink has: modules, their classes and functions, methods and parameters.

    python record.py SITE_PACKAGES > ../../golden/pyflink_names.json

SITE_PACKAGES is a folder with PyFlink in it; it is read, and not imported. Methods and parameters for objects of Java
are left out, and what begins with an underscore.
"""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARTS = ("common", "datastream", "metrics")
INTERNAL = ("java_gateway", "java_utils", "utils", "gateway", "fn_execution", "serializers")
"""Modules of PyFlink whose names are not for programs."""


FOR_JAVA = ("need_conversion", "to_internal_type", "from_internal_type")


def is_public(name: str) -> bool:
    return not name.startswith(("_", "j_", "get_java", "to_j_")) and name not in FOR_JAVA


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    taken = function.args
    given = [each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
    return [name for name in given if name not in ("self", "cls") and is_public(name)]


def members(node: ast.ClassDef) -> dict[str, Any]:
    """Methods with their parameters, and classes within the class with their own members."""
    found: dict[str, Any] = {}
    for part in node.body:
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and is_public(part.name):
            found[part.name] = parameters(part)
        elif isinstance(part, ast.ClassDef) and is_public(part.name):
            found[part.name] = members(part)
    return found


def exported(tree: ast.Module) -> list[str] | None:
    """Return the names in `__all__`, or None."""
    for part in tree.body:
        if isinstance(part, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in part.targets
        ):
            return list(ast.literal_eval(part.value))
    return None


def names_of(tree: ast.Module) -> dict[str, Any]:
    """Return what a module exports: a class with its members, and null for anything else."""
    names = exported(tree)
    found: dict[str, Any] = dict.fromkeys(names or ())
    for part in tree.body:
        if not isinstance(part, ast.ClassDef | ast.FunctionDef) or not is_public(part.name):
            continue
        if names is None or part.name in names:
            found[part.name] = members(part) if isinstance(part, ast.ClassDef) else None
    return found


def modules(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(root.glob("pyflink/**/*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if len(parts) > 1 and parts[1] in PARTS and "tests" not in parts and parts[-1] not in INTERNAL:
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield name, names_of(ast.parse(path.read_text(encoding="utf-8")))


def main() -> None:
    lines = [f" {json.dumps(name)}: {json.dumps(names)}" for name, names in modules(Path(sys.argv[1]))]
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
