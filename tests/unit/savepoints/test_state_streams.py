"""The bytes of a state, of which a file may be gone, or cannot be read, while they are read."""

import pytest

from flinkcore.errors import SavepointError
from flinkcore.savepoints.state_streams import StateStream


class FailingFile:
    """A file that fails as a store does."""

    def __init__(self, failure: OSError) -> None:
        self._failure = failure

    def read_at(self, size: int, at: int) -> bytes:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (FileNotFoundError(2, "No such file"), "state-1 does not exist any more"),
        (PermissionError(13, "denied"), "state-1 cannot be read: "),
    ],
    ids=["gone", "denied"],
)
def test_a_failure_while_a_file_is_read_is_one_error_that_names_the_file(
    failure: OSError, message: str
) -> None:
    stream = StateStream(FailingFile(failure), "state-1", 0, 10, 4)
    with pytest.raises(SavepointError) as caught:
        stream.read(0, 4)
    assert str(caught.value).startswith(message)
    assert str(caught.value).count("state-1") == 1
    assert caught.value.__cause__ is failure
