"""Arrow data of other libraries, honest and not."""

import ctypes
from collections.abc import Callable
from typing import Any

import pyarrow as pa


class ProtocolOnly:
    """Exports an array through the Arrow PyCapsule protocol, and has nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._array.__arrow_c_array__(requested_schema)  # type: ignore[no-any-return]


class ArrowSchema(ctypes.Structure):
    """struct ArrowSchema."""


ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]


class ArrowArray(ctypes.Structure):
    """struct ArrowArray."""


ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ArrowSchema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ArrowArray))
_GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class ArrowArrayStream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [
        ("get_schema", _GetSchema),
        ("get_next", _GetNext),
        ("get_last_error", _GetLastError),
        ("release", _Release),
        ("private_data", ctypes.c_void_p),
    ]


Lie = Callable[[ArrowSchema, ArrowArray], None]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Liar:
    """Exports a record batch whose structs of the Arrow C data interface say something that is not so.

    The structs are never released: what they say of their memory is no longer so.

    Parameters
    ----------
    batch
        What is exported.
    lie
        Changes the structs.
    """

    def __init__(self, batch: pa.RecordBatch, lie: Lie = lambda schema, array: None) -> None:
        self._batch = batch
        self._lie = lie
        self._kept: list[Any] = []

    def _structs(self) -> tuple[ArrowSchema, ArrowArray]:
        schema, array = ArrowSchema(), ArrowArray()
        self._batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
        self._lie(schema, array)
        self._kept += [schema, array]
        return schema, array

    def __arrow_c_schema__(self) -> object:
        schema, _ = self._structs()
        return new_capsule(ctypes.addressof(schema), b"arrow_schema", None)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        schema, array = self._structs()
        return (
            new_capsule(ctypes.addressof(schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(array), b"arrow_array", None),
        )


class LyingStream(Liar):
    """The same as a stream of one batch, which can be asked for its schema only through the stream."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        arrays = [self._structs()[1]]

        def get_schema(_: object, out: Any) -> int:
            ctypes.pointer(out[0])[0] = self._structs()[0]
            return 0

        def get_next(_: object, out: Any) -> int:
            ctypes.pointer(out[0])[0] = arrays.pop() if arrays else ArrowArray()
            return 0

        stream = ArrowArrayStream(
            _GetSchema(get_schema),
            _GetNext(get_next),
            _GetLastError(lambda _: None),
            _Release(lambda _: None),
        )
        self._kept.append(stream)
        return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)
