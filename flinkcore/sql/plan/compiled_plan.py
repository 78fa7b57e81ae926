"""A compiled plan of Flink (FLIP-190): its nodes, their inputs and the types of their rows."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from flinkcore.errors import ConfigurationError, UnsupportedOperationError
from flinkcore.sql.types.logical_types import LogicalType, type_of

_PREFIX: Final = "stream-exec-"
_KNOWN_VERSIONS: Final = ("2.0", "2.1", "2.2", "2.3")
_OTHER_PLAN: Final = "Give the JSON that COMPILE PLAN 'file:///plan.json' FOR ... writes, or its path"


@dataclass(frozen=True, eq=False)
class PlanNode:
    """A node of a plan.

    Attributes
    ----------
    id : int
    kind : str
        Its type without prefix and version, such as ``window-aggregate``.
    version : int
    description : str
        Its description, as Flink's ``EXPLAIN`` shows it.
    json : mapping
        Its part of the JSON.
    inputs : list of PlanNode
        Nodes whose rows it reads, in the order of its inputs.
    readers : list of PlanNode
        Nodes that read its rows.
    """

    id: int
    kind: str
    version: int
    description: str
    json: Mapping[str, Any]
    inputs: list[PlanNode] = field(default_factory=list)
    readers: list[PlanNode] = field(default_factory=list)

    @property
    def input(self) -> PlanNode:
        """Its only input."""
        (only,) = self.inputs
        return only

    @property
    def fields(self) -> tuple[tuple[str, LogicalType], ...]:
        """Names and types of its columns."""
        return type_of(self.json["outputType"]).children

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its columns."""
        return tuple(name for name, _ in self.fields)

    def refuse(self, what: str, instead: str = "") -> UnsupportedOperationError:
        """Return the error for something of this node that is not supported, with what to write instead."""
        remedy = f" {instead}" if instead else ""
        return UnsupportedOperationError(f"node {self.id} of the plan, {self.description}: {what}.{remedy}")

    def __str__(self) -> str:
        return f"{self.id}: {self.description}"


@dataclass(frozen=True, eq=False)
class CompiledPlan:
    """A plan.

    Attributes
    ----------
    version : str
        Version of Flink that compiled it.
    nodes : tuple of PlanNode
        All nodes, inputs first.
    json : mapping
        Content of the JSON.
    """

    version: str
    nodes: tuple[PlanNode, ...]
    json: Mapping[str, Any]

    @property
    def sinks(self) -> list[PlanNode]:
        """Nodes that no other node reads."""
        return [node for node in self.nodes if not node.readers]

    @classmethod
    def of(cls, plan: str | os.PathLike[str] | Mapping[str, Any]) -> CompiledPlan:
        """Read a plan.

        Parameters
        ----------
        plan : str, os.PathLike or mapping
            Path of the JSON, its text, or what it holds.

        Raises
        ------
        ConfigurationError
            If there is no such file, or it is not a compiled plan.
        UnsupportedOperationError
            If it is a batch plan, or that of another version.
        """
        content = plan if isinstance(plan, Mapping) else _content(plan)
        try:
            version, written, edges = str(content["flinkVersion"]), content["nodes"], content["edges"]
            nodes = {each["id"]: _node(each) for each in written}
            for edge in edges:
                target, source = nodes[edge["target"]], nodes[edge["source"]]
                target.inputs.append(source)
                source.readers.append(target)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"this is not a compiled plan of Flink: {error!r}. {_OTHER_PLAN}"
            ) from error
        if version not in _KNOWN_VERSIONS:
            raise UnsupportedOperationError(
                f"the plan was compiled by Flink {version}; plans of {', '.join(_KNOWN_VERSIONS)} are read. Compile "
                "it with one of these"
            )
        return cls(version, tuple(_in_order(nodes.values())), content)


def _in_order(nodes: Any) -> list[PlanNode]:
    ordered: list[PlanNode] = []
    seen: set[int] = set()
    to_do = list(reversed(list(nodes)))
    while to_do:
        node = to_do[-1]
        waiting = [each for each in reversed(node.inputs) if each.id not in seen]
        if waiting:
            to_do += waiting
            continue
        to_do.pop()
        if node.id not in seen:
            seen.add(node.id)
            ordered.append(node)
    return ordered


def _node(written: Mapping[str, Any]) -> PlanNode:
    name = written["type"]
    if not name.startswith(_PREFIX):
        raise UnsupportedOperationError(
            f"node {written['id']} of the plan is {name}: plans of streaming mode are read. Compile it with "
            "SET 'execution.runtime-mode' = 'streaming'"
        )
    kind, _, version = name.removeprefix(_PREFIX).rpartition("_")
    return PlanNode(int(written["id"]), kind, int(version), written.get("description", kind), written)


def _content(plan: str | os.PathLike[str]) -> Any:
    text = os.fspath(plan)
    if not text.lstrip().startswith("{"):
        try:
            with open(text, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise ConfigurationError(
                f"the plan {text} cannot be read: {error.strerror}. {_OTHER_PLAN}"
            ) from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the plan is not JSON: {error}. {_OTHER_PLAN}") from error
