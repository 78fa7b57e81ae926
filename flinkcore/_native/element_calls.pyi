from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from types import GenericAlias
from typing import Any, Generic, TypeVar, final

from typing_extensions import Self, disjoint_base

from flinkcore._native.timers import CurrentKey

_T = TypeVar("_T")

@final
class StreamRecord(Generic[_T]):
    __match_args__: tuple[str, ...]
    value: _T
    timestamp: int | None
    def __new__(cls, value: _T, timestamp: int | None = None) -> StreamRecord[_T]: ...
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

def kept_context(method: str) -> Exception: ...

@disjoint_base
class CallContext:
    subject: Any
    @property
    def _timer_service(self) -> Any: ...
    def __new__(cls, timer_service: Any, *arguments: Any, **named: Any) -> Self: ...
    def timer_service(self) -> Any: ...
    def timestamp(self) -> int: ...

@disjoint_base
class ExtractedTimestamps:
    def __new__(cls, extract_timestamp: Callable[[Any, int], Any], *arguments: Any, **named: Any) -> Self: ...
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int: ...

def new_extracted_timestamps(
    cls: type[ExtractedTimestamps], extract_timestamp: Callable[[Any, int], Any]
) -> ExtractedTimestamps: ...

@disjoint_base
class LargestTimestamp:
    @property
    def _max_timestamp(self) -> int: ...
    @_max_timestamp.setter
    def _max_timestamp(self, timestamp: int) -> None: ...
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None: ...
    def __getstate__(self) -> dict[str, Any]: ...
    def __setstate__(self, state: dict[str, Any]) -> None: ...

@disjoint_base
class CurrentKeyValues:
    accepts: Callable[[Any], bool] | None
    refuse: Callable[[Any], None] | None
    @property
    def _key_context(self) -> CurrentKey: ...
    def __new__(cls, key_context: CurrentKey, *arguments: Any, **named: Any) -> Self: ...
    def select_values(self, values: Any) -> None: ...
    def get_internal(self) -> Any: ...
    def update_internal(self, value: Any) -> None: ...
    def replace(self, value: Any) -> None: ...

@final
class MapKeys:
    def __new__(
        cls,
        state_name: str,
        conversion: Callable[[Any], Any] | None = None,
        plain_classes: frozenset[type] = frozenset(),
    ) -> MapKeys: ...
    def __call__(self, key: Any) -> Hashable: ...
    def hold_all(
        self,
        entries: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
        check: Callable[[Any, Any], Any] | None = None,
    ) -> dict[Hashable, Any]: ...

@disjoint_base
class MapEntries:
    @property
    def _entries(self) -> dict[Any, Any]: ...
    @property
    def _keys(self) -> MapKeys: ...
    check_entry: Callable[[Any, Any], Any] | None
    def __new__(cls, entries: dict[Any, Any], keys: MapKeys, *arguments: Any, **named: Any) -> Self: ...
    def get(self, key: Any) -> Any: ...
    def contains(self, key: Any) -> bool: ...
    def put_entry(self, key: Any, value: Any) -> None: ...

@disjoint_base
class CurrentKeyEntries(CurrentKeyValues):
    map_keys: MapKeys
    check_entry: Callable[[Any, Any], Any] | None
    def get_entry(self, key: Any) -> Any: ...
    def contains_entry(self, key: Any) -> bool: ...
    def put_entry(self, key: Any, value: Any) -> None: ...
    def remove_entry(self, key: Any) -> None: ...
    def entries(self) -> list[tuple[Any, Any]]: ...
    def entry_keys(self) -> list[Any]: ...

@disjoint_base
class ResultCollector:
    waiting: Iterator[Any] | None
    def __new__(
        cls,
        collect: Callable[[StreamRecord[Any]], None],
        collect_side: Callable[[Any, StreamRecord[Any]], None],
        side_output: type,
        output_full: type[BaseException],
        *arguments: Any,
        **named: Any,
    ) -> Self: ...
    def emit(
        self,
        results: Iterable[Any],
        timestamp: int | None,
        side_timestamp: int | None,
        method: str,
        subject: Any,
    ) -> None: ...

_Failed = Callable[[str, StreamRecord[Any], Exception], Exception]
_Misfit = Callable[[str, Any, StreamRecord[Any], Exception], Exception]

@disjoint_base
class CallOfKey:
    def __new__(
        cls,
        current_key: CurrentKey,
        cleanups: list[Callable[[], None]],
        select_key: Callable[[Any], Hashable] | None,
        key_failed: Callable[[StreamRecord[Any], Exception], Exception],
        *arguments: Any,
    ) -> Self: ...
    def process(self, record: StreamRecord[Any]) -> None: ...
    def process_of_key(self, key: Hashable, record: StreamRecord[Any]) -> None: ...

@final
class KeyedCall(CallOfKey):
    def __new__(
        cls,
        current_key: CurrentKey,
        cleanups: list[Callable[[], None]],
        select_key: Callable[[Any], Hashable] | None,
        key_failed: Callable[[StreamRecord[Any], Exception], Exception],
        method: Callable[[Any, Any], Iterable[Any] | None],
        context: CallContext,
        emit: Callable[[Iterable[Any], StreamRecord[Any]], None],
        failed: Callable[[StreamRecord[Any], Exception], Exception],
    ) -> KeyedCall: ...

@final
class TimestampCall:
    def __new__(
        cls,
        extract_timestamp: Callable[[Any, int], int],
        collect: Callable[[StreamRecord[Any]], None],
        on_event: Callable[[Any, int, Any], None],
        watermark_output: Any,
    ) -> TimestampCall: ...
    def process(self, record: StreamRecord[Any]) -> None: ...

@final
class MapCall:
    def __new__(
        cls,
        function: Callable[[Any], Any],
        conversion: Callable[[Any], Any] | None,
        collect: Callable[[StreamRecord[Any]], None],
        failed: _Failed,
        misfit: _Misfit,
    ) -> MapCall: ...
    def process(self, record: StreamRecord[Any]) -> None: ...

@final
class FilterCall:
    def __new__(
        cls,
        function: Callable[[Any], Any],
        conversion: Callable[[Any], Any] | None,
        collect: Callable[[StreamRecord[Any]], None],
        failed: _Failed,
        misfit: _Misfit,
    ) -> FilterCall: ...
    def process(self, record: StreamRecord[Any]) -> None: ...

@final
class ReduceCall:
    def __new__(
        cls,
        current_key: CurrentKey,
        state: CurrentKeyValues,
        select_key: Callable[[Any], Hashable],
        reduce: Callable[[Any, Any], Any],
        begin: Callable[[Any], None] | None,
        conversion: Callable[[Any], Any] | None,
        collect: Callable[[StreamRecord[Any]], None],
        failed: _Failed,
        misfit: _Misfit,
        key_failed: Callable[[StreamRecord[Any], Exception], Exception],
    ) -> ReduceCall: ...
    def process(self, record: StreamRecord[Any]) -> None: ...

@final
class ConversionUnless:
    def __new__(cls, kept: type, convert: Callable[[Any], Any], bits: int = 0) -> ConversionUnless: ...
    def __call__(self, value: Any) -> Any: ...

@final
class FieldsConversion:
    def __new__(
        cls, conversions: tuple[Callable[[Any], Any] | None, ...], convert: Callable[[Any], Any]
    ) -> FieldsConversion: ...
    def __call__(self, value: Any) -> Any: ...

@final
class OpenPaneCall(CallOfKey):
    def __new__(
        cls,
        current_key: CurrentKey,
        cleanups: list[Callable[[], None]],
        select_key: Callable[[Any], Hashable] | None,
        key_failed: Callable[[StreamRecord[Any], Exception], Exception],
        create: Callable[[Any], Any] | None,
        add: Callable[[Any, Any], Any] | None,
        contents_first: bool,
        register_timer: Callable[[Any, int], None],
        lateness_ms: int,
        process_elsewhere: Callable[[Hashable, StreamRecord[Any]], bool],
        drop: Callable[[Any, int], None],
        failed: Callable[[StreamRecord[Any], Exception], Exception],
    ) -> OpenPaneCall: ...
    def open(self, low_ms: int, high_ms: int, panes: list[tuple[Any, int, dict[int, Any]]]) -> None: ...
    def close(self) -> None: ...

@disjoint_base
class ArrivalClock:
    now_ms: int
    next_due_ms: int

def emit_elements(
    values: list[Any],
    arrivals: Iterable[int],
    clock: ArrivalClock,
    process: Callable[[StreamRecord[Any]], None],
) -> None: ...
