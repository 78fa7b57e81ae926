"""Whether the steps of a job can run element by element, before anything runs."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from flinkcore.common.execution_config import ExecutionConfig
from flinkcore.datastream.element_transformations import SinkTransformation
from flinkcore.runtime.processing_time import DrivenProcessingTimeService
from flinkcore.runtime.tasks.operator_makers import make_operator
from flinkcore.runtime.tasks.operator_setup import JobContext, OperatorSetup
from flinkcore.runtime.tasks.stream_graph import StreamNode, is_source_node
from flinkcore.runtime.tasks.task_output import TaskOutput


def check_operators(nodes: Sequence[StreamNode], configuration: ExecutionConfig) -> None:
    """Make the operators of a job, but for its sinks, and let go of them; none is opened.

    Raises
    ------
    ConfigurationError
        If a step cannot run element by element.
    UserCodeError
        If a function cannot be copied.
    """
    clock = DrivenProcessingTimeService()
    job = JobContext(configuration, lambda task: clock, lambda value: None, copy.copy)
    for node in nodes:
        if not (is_source_node(node) or isinstance(node.transformation, SinkTransformation)):
            make_operator(OperatorSetup(node, 0, job, clock), lambda conversion: TaskOutput([]))
