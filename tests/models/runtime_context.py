"""A runtime context of a lone subtask."""

from flinkcore.datastream.functions import RuntimeContext


class LoneSubtask(RuntimeContext):
    def get_task_name(self) -> str:
        return "task"

    def get_number_of_parallel_subtasks(self) -> int:
        return 1

    def get_max_number_of_parallel_subtasks(self) -> int:
        return 128

    def get_index_of_this_subtask(self) -> int:
        return 0

    def get_attempt_number(self) -> int:
        return 0

    def get_task_name_with_subtasks(self) -> str:
        return "task (1/1)"

    def get_job_parameter(self, key: str, default_value: str) -> str:
        return default_value
