"""Calls of the operators of element jobs, which process each element by itself, with context and keyed state.

A call of an operator takes a record, calls a function of the user, and passes the result to any callable, such as the call of
the next operator of the chain. Methods that are called once per record are not bound as Python functions are, since binding
would take longer than their work.
"""

from types import GeneratorType, GenericAlias

import cython
from cpython.dict cimport PyDict_Contains, PyDict_GetItemWithError, PyDict_SetItem
from cpython.long cimport PyLong_AsLongLongAndOverflow
from cpython.object cimport PyObject
from libc.stdint cimport INT64_MAX, int64_t

from flinkcore.errors import DataError, LifecycleError, SchemaError

from flinkcore._native.keys cimport dictionary_key, dictionary_key_as, given_items, given_keys
from flinkcore._native.timers cimport CurrentKey

cdef extern from "Python.h":
    PyObject* PyDict_GetItemWithError(object mapping, object key) except? NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef object NO_TIMESTAMP = -(2**63)


# ---- records and contexts ----------------------------------------------------------------------------------------


@cython.final
@cython.freelist(64)
cdef class StreamRecord:
    """A value and its event time.

    Parameters
    ----------
    value : object
    timestamp : int or None
        Event time in ms since the epoch, or None without one.

    Notes
    -----
    Flink's ``org.apache.flink.streaming.runtime.streamrecord.StreamRecord``.
    """

    __match_args__ = ("value", "timestamp")
    __class_getitem__ = classmethod(GenericAlias)

    cdef public object value
    cdef public object timestamp

    def __cinit__(self, value, timestamp=None):
        self.value = value
        self.timestamp = timestamp

    def __eq__(self, other):
        cdef StreamRecord record
        if type(other) is not StreamRecord:
            return NotImplemented
        record = <StreamRecord> other
        return (self.value, self.timestamp) == (record.value, record.timestamp)

    def __repr__(self):
        return f"StreamRecord(value={self.value!r}, timestamp={self.timestamp!r})"

    def __reduce__(self):
        return StreamRecord, (self.value, self.timestamp)


cdef inline StreamRecord _new_record(object value, object timestamp):
    cdef StreamRecord record = StreamRecord.__new__(StreamRecord, value)
    record.timestamp = timestamp
    return record


def kept_context(str method):
    """Return the error to raise if a context is used outside of a call."""
    return LifecycleError(
        f"{method}() is asked of a context outside of the call that it was passed to: before and after it, a context "
        "has no element, timer or window; keep its values during the call instead"
    )


cdef class CallContext:
    """Context of a process function, one object for all its calls.

    Parameters
    ----------
    timer_service : TimerService

    Attributes
    ----------
    subject : StreamRecord, InternalTimer or None
        The element or timer of the current call, or None outside of a call.
    """

    cdef public object subject
    cdef readonly object _timer_service

    def __cinit__(self, timer_service, *arguments, **named):
        self._timer_service = timer_service

    @cython.binding(False)
    def timer_service(self):
        """Return the service that knows the time, and registers and deletes timers of the current key."""
        return self._timer_service

    @cython.binding(False)
    def timestamp(self):
        """Return the timestamp of the element (-2**63 without one) or of the timer, in ms since the epoch."""
        cdef object subject = self.subject
        cdef object timestamp
        if type(subject) is StreamRecord:
            timestamp = (<StreamRecord> subject).timestamp
            return NO_TIMESTAMP if timestamp is None else timestamp
        if subject is None:
            raise kept_context("timestamp")
        return subject.timestamp_ms


# ---- times and watermarks ----------------------------------------------------------------------------------------


cdef class ExtractedTimestamps:
    """Timestamps of a user's assigner, which must be ints of 64 bits.

    Parameters
    ----------
    extract_timestamp : callable
        Takes an element and its previous timestamp, and returns its event time in ms since the epoch.

    Notes
    -----
    A subclass has `failed`, which returns the error of the assigner for the element, its previous timestamp and the exception;
    and `converted`, which returns another integer as an int, or raises, from the timestamp, the element and its previous
    timestamp.
    """

    cdef object _extract_timestamp

    def __cinit__(self, extract_timestamp, *arguments, **named):
        self._extract_timestamp = extract_timestamp

    @cython.binding(False)
    def extract_timestamp(self, value, record_timestamp):
        """Return the user's timestamp.

        Raises
        ------
        UserCodeError
            If the assigner raises; errors of flinkcore are passed on unchanged.
        DataError
            If it does not return an integer of 64 bits.
        """
        cdef int beyond = 0
        cdef object timestamp, error
        try:
            timestamp = self._extract_timestamp(value, record_timestamp)
        except Exception as failure:
            error = self.failed(value, record_timestamp, failure)
            if error is failure:
                raise
            raise error from failure
        if type(timestamp) is int:
            PyLong_AsLongLongAndOverflow(timestamp, &beyond)
            if not beyond:
                return timestamp
        return self.converted(timestamp, value, record_timestamp)

    def __reduce__(self):
        return new_extracted_timestamps, (type(self), self._extract_timestamp), getattr(self, "__dict__", None)


def new_extracted_timestamps(cls, extract_timestamp):
    """Return new timestamps of a class, as yet without the attributes that its `__init__` sets."""
    return ExtractedTimestamps.__new__(cls, extract_timestamp)


cdef class LargestTimestamp:
    """Largest timestamp that a generator of watermarks has seen.

    Attributes
    ----------
    _max_timestamp : int
        In ms since the epoch; a subclass sets it first.
    """

    cdef int64_t _largest
    cdef bint _is_set

    @property
    def _max_timestamp(self):
        self._require_set()
        return self._largest

    @_max_timestamp.setter
    def _max_timestamp(self, int64_t timestamp):
        self._largest = timestamp
        self._is_set = True

    cdef int _require_set(self) except -1:
        if not self._is_set:
            raise AttributeError(
                f"_max_timestamp of {type(self).__qualname__} is not set: its __init__ should call super().__init__(...)"
            )
        return 0

    @cython.binding(False)
    def on_event(self, event, int64_t event_timestamp, output):
        """Take the timestamp of an event."""
        if not self._is_set:
            self._require_set()
        if event_timestamp > self._largest:
            self._largest = event_timestamp

    def __getstate__(self):
        cdef dict state = dict(getattr(self, "__dict__", ()))
        if self._is_set:
            state["_max_timestamp"] = self._largest
        return state

    def __setstate__(self, dict state not None):
        for name, value in state.items():
            setattr(self, name, value)


# ---- state of the current key ------------------------------------------------------------------------------------


cdef class CurrentKeyValues:
    """Values of one namespace of a state, by key id. Methods read and set the value of the current key.

    Parameters
    ----------
    key_context : CurrentKey

    Attributes
    ----------
    refuse : callable or None
        Called with a value of :meth:`replace` for which `accepts` is false, or None if all values are accepted.
    accepts : callable

    Notes
    -----
    A subclass has `no_current_key`, which returns the error to raise; `make_room`, which sets a value beyond the end of the list;
    and `clear`.
    """

    cdef readonly CurrentKey _key_context
    cdef public object accepts
    cdef public object refuse
    cdef object _values
    cdef list _list  # the values if they are a list, or None

    def __cinit__(self, CurrentKey key_context not None, *arguments, **named):
        self._key_context = key_context
        self._values = {}

    cdef object _value(self):
        cdef Py_ssize_t key_id = self._key_context.key_id
        if key_id < 0:
            raise self.no_current_key()
        if self._list is None:
            return self._values[key_id]
        return self._list[key_id] if key_id < len(self._list) else None

    cdef int _set_value(self, object value) except -1:
        cdef Py_ssize_t key_id = self._key_context.key_id
        if key_id < 0:
            raise self.no_current_key()
        if self._list is None:
            self._values[key_id] = value
        elif key_id < len(self._list):
            self._list[key_id] = value
        else:
            self.make_room(key_id, value)
        return 0

    def select_values(self, values):
        """Take the values of another namespace: a list, or a mapping that returns None for a key without a value."""
        self._values = values
        self._list = values if type(values) is list else None

    @cython.binding(False)
    def get_internal(self):
        """Return the held object itself for the current key and namespace, or None."""
        return self._value()

    @cython.binding(False)
    def update_internal(self, value):
        """Hold another object, not None, for the current key and namespace."""
        self._set_value(value)

    @cython.binding(False)
    def replace(self, value):
        """Check and hold another value for the current key and namespace; None removes the value."""
        if value is None:
            self.clear()
            return
        if self.refuse is not None and not self.accepts(value):
            self.refuse(value)
        self._set_value(value)


@cython.final
cdef class MapKeys:
    """Keys of a map state as its dictionaries hold them: keys that are equal in Java are one, as keys of streams are.

    Parameters
    ----------
    state_name : str
        Name of the state in errors.
    conversion : callable, optional
        Conversion to the declared type, in which keys are compared. A key that it refuses is compared unconverted.
    plain_classes : frozenset of type
        Classes whose direct instances the conversion does not change.

    Notes
    -----
    Flink's states hold their entries in a ``HashMap``, which keeps the first of equal keys.
    """

    cdef object _state_name
    cdef object _conversion
    cdef frozenset _plain_classes

    def __cinit__(self, state_name, conversion=None, frozenset plain_classes not None=frozenset()):
        self._state_name = state_name
        self._conversion = conversion
        self._plain_classes = plain_classes

    def __call__(self, key):
        """Return the representative of a key in a dictionary. A key that can be neither hashed nor pickled raises a
        SchemaError."""
        return self.held(key)

    def hold_all(self, entries, check=None):
        """Return a new dictionary of entries by the representatives of their keys.

        Parameters
        ----------
        entries : mapping, or iterable of pairs
        check : callable, optional
            Takes a key and a value, and returns the value to hold.

        Raises
        ------
        SchemaError
            If these are not entries, or a key can be neither hashed nor pickled.
        """
        cdef dict found = {}
        cdef list pairs
        cdef object key, value
        try:
            if hasattr(entries, "items"):
                entries = entries.items()
            pairs = [(key, value) for key, value in entries]
        except (TypeError, ValueError) as failure:
            raise SchemaError(
                f"the map state {self._state_name!r} takes a mapping or pairs of key and value, not {entries!r}"
            ) from failure
        for key, value in pairs:
            if check is not None:
                value = check(key, value)
            found[self.held(key)] = value
        return found

    cdef object held(self, object key):
        cdef object converted
        try:
            if self._conversion is None or type(key) in self._plain_classes:
                return dictionary_key(key)
            try:
                converted = self._conversion(key)
            except DataError:
                return dictionary_key(key)
            return dictionary_key(key) if converted is key else dictionary_key_as(key, converted)
        except TypeError as failure:
            raise SchemaError(
                f"{key!r} cannot be a map key of the state {self._state_name!r}: {failure}. Take such a part of it as a "
                "text, a number or a tuple of them"
            ) from failure


cdef class MapEntries:
    """Entries of a map by the representatives of their keys.

    Parameters
    ----------
    entries : dict
        Values by the result of `keys` for a key.
    keys : MapKeys

    Attributes
    ----------
    check_entry : callable or None
        Takes a key and a value, and returns the value to put; None if all entries are accepted.
    """

    cdef readonly dict _entries
    cdef readonly MapKeys _keys
    cdef public object check_entry

    def __cinit__(self, dict entries not None, MapKeys keys not None, *arguments, **named):
        self._entries = entries
        self._keys = keys

    @cython.binding(False)
    def get(self, key):
        """Return the value of a key, or None."""
        return _value_of(self._entries, self._keys, key)

    @cython.binding(False)
    def contains(self, key):
        """Return whether there is an entry of the key."""
        return bool(PyDict_Contains(self._entries, self._keys.held(key)))

    @cython.binding(False)
    def put_entry(self, key, value):
        """Set the value of a key; a key that is equal to an earlier one does not replace it."""
        if self.check_entry is not None:
            value = self.check_entry(key, value)
        self._entries[self._keys.held(key)] = value


cdef inline object _value_of(dict entries, MapKeys keys, object key):
    cdef PyObject* found = PyDict_GetItemWithError(entries, keys.held(key))
    return None if found is NULL else <object> found


cdef class CurrentKeyEntries(CurrentKeyValues):
    """Maps of one namespace of a state, by key id. Methods read and change the map of the current key.

    Attributes
    ----------
    map_keys : MapKeys
    check_entry : callable or None
        Takes a key and a value, and returns the value to put; None if all entries are accepted.

    Notes
    -----
    The values are dictionaries that are never empty, by the result of `map_keys` for a key.
    """

    cdef public MapKeys map_keys
    cdef public object check_entry

    @cython.binding(False)
    def get_entry(self, key):
        """Return the value of a map key, or None."""
        cdef object entries = self._value()
        return None if entries is None else _value_of(<dict> entries, self.map_keys, key)

    @cython.binding(False)
    def contains_entry(self, key):
        """Return whether there is an entry of the map key."""
        cdef object entries = self._value()
        return entries is not None and bool(PyDict_Contains(entries, self.map_keys.held(key)))

    @cython.binding(False)
    def put_entry(self, key, value):
        """Set the value of a map key; a key that is equal to an earlier one does not replace it."""
        cdef object entries, held
        if self.check_entry is not None:
            value = self.check_entry(key, value)
        entries = self._value()
        held = self.map_keys.held(key)
        if entries is None:
            self._set_value({held: value})
        else:
            (<dict> entries)[held] = value

    @cython.binding(False)
    def remove_entry(self, key):
        """Remove a map key, if it is there."""
        cdef object entries = self._value()
        if entries is not None:
            (<dict> entries).pop(self.map_keys.held(key), None)
            if not <dict> entries:
                self.clear()

    @cython.binding(False)
    def entries(self):
        """Return pairs of map key and value, in a new list."""
        cdef object entries = self._value()
        return [] if entries is None else given_items(entries)

    @cython.binding(False)
    def entry_keys(self):
        """Return the map keys in a new list."""
        cdef object entries = self._value()
        return [] if entries is None else given_keys(entries)


# ---- results -----------------------------------------------------------------------------------------------------


cdef class ResultCollector:
    """Emits the results of a function, one by one as it makes them.

    Parameters
    ----------
    collect : callable
        Takes records of the main output.
    collect_side : callable
        Takes an OutputTag and a record.
    side_output : type
        The class of output tags.
    output_full : type
        The class of the error of an output that is full.

    Attributes
    ----------
    waiting : iterator or None
        The remaining results of a call whose output was full.

    Notes
    -----
    A subclass has `failed`, which returns the error of a function, and `refuse_other_than_iterable`.
    """

    cdef public object waiting
    cdef object _collect
    cdef object _collect_side
    cdef object _side_output
    cdef object _output_full

    def __cinit__(self, collect, collect_side, side_output, output_full, *arguments, **named):
        self._collect = collect
        self._collect_side = collect_side
        self._side_output = side_output
        self._output_full = output_full

    def emit(self, results, timestamp, side_timestamp, method, subject):
        """Emit the results that a call of a function yields or has returned.

        Parameters
        ----------
        results : iterable
            Results, of which a pair of an `OutputTag` and an element goes to that side output. Pass `waiting` to continue an
            earlier call.
        timestamp : int or None
            Timestamp of records of the main output, in ms since the epoch, or None without one.
        side_timestamp : int or None
            Timestamp of records of side outputs, in ms since the epoch; None becomes -2**63, as in Flink.
        method : str
        subject : StreamRecord, InternalTimer or Window
            Name of the method that was called, and its subject, for errors.

        Raises
        ------
        UserCodeError
            If the function raises, as a generator does while its results are taken; or if its result is not iterable,
            or is a text or a dict, whose elements would be characters or keys.
        OutputFullError
            If the output is full: the remaining results are `waiting`.
        """
        cdef object iterator, result
        if results is self.waiting:
            self.waiting = None
            iterator = results
        else:
            if type(results) is not GeneratorType and type(results) is not list:
                self.refuse_other_than_iterable(results, method, subject)
            try:
                iterator = iter(results)
            except Exception as failure:
                raise self.failed(method, subject, failure) from failure
        while True:
            try:
                result = next(iterator, _NO_RESULT)
            except Exception as failure:
                raise self.failed(method, subject, failure) from failure
            if result is _NO_RESULT:
                return
            try:
                if isinstance(result, tuple) and len(<tuple> result) == 2 and isinstance((<tuple> result)[0], self._side_output):
                    self._collect_side(
                        (<tuple> result)[0],
                        _new_record((<tuple> result)[1], NO_TIMESTAMP if side_timestamp is None else side_timestamp),
                    )
                else:
                    self._collect(_new_record(result, timestamp))
            except self._output_full:
                self.waiting = iterator
                raise


cdef object _NO_RESULT = object()


# ---- conversions -------------------------------------------------------------------------------------------------


@cython.final
cdef class ConversionUnless:
    """Converts values, except the direct instances of one class, which are kept.

    Parameters
    ----------
    kept : type
    convert : callable
    bits : int
        Number of bits, with the sign, of integers that are kept; 0 for other values, or integers of any size.
    """

    cdef object _kept
    cdef object _convert
    cdef long long _largest

    def __cinit__(self, type kept not None, convert, int bits=0):
        if bits and (kept is not int or not 1 < bits <= 64):
            raise ValueError(f"2 to 64 bits of an int, not {bits} of {kept}")
        self._kept = kept
        self._convert = convert
        self._largest = <long long> ((<unsigned long long> 1 << (bits - 1)) - 1) if bits else -1

    def __call__(self, value):
        return value if _is_kept(self, value) else self._convert(value)


cdef inline bint _is_kept(ConversionUnless unless, object value) except -1:
    cdef int overflow = 0
    cdef long long number
    if type(value) is not unless._kept:
        return False
    if unless._largest < 0:
        return True
    number = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and -unless._largest - 1 <= number <= unless._largest


@cython.final
cdef class FieldsConversion:
    """Converts values of several fields, except tuples whose fields are all kept.

    Parameters
    ----------
    conversions : tuple of callable or None
        Conversion of each field, or None if all its values are kept.
    convert : callable
        Converts any other value.
    """

    cdef tuple _conversions
    cdef object _convert

    def __cinit__(self, tuple conversions not None, convert):
        self._conversions = conversions
        self._convert = convert

    def __call__(self, value):
        return value if _stays(self._conversions, value) else self._convert(value)


cdef inline bint _stays(tuple conversions, object value) except -1:
    cdef Py_ssize_t index, count = len(conversions)
    cdef object conversion
    if type(value) is not tuple or len(<tuple> value) != count:
        return False
    for index in range(count):
        conversion = conversions[index]
        if conversion is None:
            continue
        if type(conversion) is not ConversionUnless or not _is_kept(conversion, (<tuple> value)[index]):
            return False
    return True


cdef inline object _converted(object conversion, object value):
    if type(conversion) is FieldsConversion:
        if _stays((<FieldsConversion> conversion)._conversions, value):
            return value
        return (<FieldsConversion> conversion)._convert(value)
    if type(conversion) is ConversionUnless:
        if _is_kept(conversion, value):
            return value
        return (<ConversionUnless> conversion)._convert(value)
    return conversion(value)


# ---- calls of operators ------------------------------------------------------------------------------------------


cdef inline object _selected_key(object select_key, object key_failed, StreamRecord record):
    try:
        return select_key(record.value)
    except Exception as failure:
        raise key_failed(record, failure) from failure


cdef class CallOfKey:
    """A call for the records of an input, each with its key.

    Parameters
    ----------
    current_key : CurrentKey
    cleanups : list of callable
        Called once for each record; always the same list.
    select_key : callable or None
        Takes an element and returns its key, or None if records come with their keys.
    key_failed : callable
        Takes a record and the exception of `select_key`, and returns the error to raise.
    """

    cdef CurrentKey _current_key
    cdef list _cleanups
    cdef object _select_key
    cdef object _key_failed

    def __cinit__(
        self,
        CurrentKey current_key not None,
        list cleanups not None,
        select_key,
        key_failed,
        *arguments,
    ):
        self._current_key = current_key
        self._cleanups = cleanups
        self._select_key = select_key
        self._key_failed = key_failed

    @cython.binding(False)
    def process(self, StreamRecord record not None):
        """Process a record."""
        self._process(_selected_key(self._select_key, self._key_failed, record), record)

    @cython.binding(False)
    def process_of_key(self, key, StreamRecord record not None):
        """Process a record of a key."""
        self._process(key, record)

    cdef int _process(self, object key, StreamRecord record) except -1:
        # Begins every call: sets the current key, and cleans up what the last record has left.
        cdef object clean_up
        self._current_key.set_key(key)
        for clean_up in self._cleanups:
            clean_up()
        return 0


@cython.final
cdef class KeyedCall(CallOfKey):
    """Calls a function's method for the records of an input, with the record's key as the current key.

    Parameters
    ----------
    current_key, cleanups, select_key, key_failed
        As for :class:`CallOfKey`.
    method : callable
        Takes an element and the context.
    context : CallContext
    emit : callable
        Takes the result of the method, unless it is None, and the record.
    failed : callable
        Takes a record and the exception of the method, and returns the error to raise.
    """

    cdef object _method
    cdef CallContext _context
    cdef object _emit
    cdef object _failed

    def __cinit__(
        self,
        current_key,
        cleanups,
        select_key,
        key_failed,
        method,
        CallContext context not None,
        emit,
        failed,
    ):
        self._method = method
        self._context = context
        self._emit = emit
        self._failed = failed

    cdef int _process(self, object key, StreamRecord record) except -1:
        cdef object given
        CallOfKey._process(self, key, record)
        self._context.subject = record
        try:
            try:
                given = self._method(record.value, self._context)
            except Exception as failure:
                raise self._failed(record, failure) from failure
            if given is not None:
                self._emit(given, record)
        finally:
            self._context.subject = None
        return 0


@cython.final
cdef class TimestampCall:
    """Gives each record its timestamp, sends it on, and then shows the generator of watermarks its value.

    Parameters
    ----------
    extract_timestamp : callable
        Takes an element and its timestamp or -2**63, and returns an int of 64 bits.
    collect : callable
    on_event : callable
        Takes an element, its timestamp and the output of watermarks.
    watermark_output : WatermarkOutput
    """

    cdef object _extract_timestamp
    cdef object _collect
    cdef object _on_event
    cdef object _watermark_output

    def __cinit__(self, extract_timestamp, collect, on_event, watermark_output):
        self._extract_timestamp = extract_timestamp
        self._collect = collect
        self._on_event = on_event
        self._watermark_output = watermark_output

    @cython.binding(False)
    def process(self, StreamRecord record not None):
        """Process a record."""
        cdef object value = record.value  # downstream may change the record
        cdef object timestamp = self._extract_timestamp(
            value, NO_TIMESTAMP if record.timestamp is None else record.timestamp
        )
        record.timestamp = timestamp
        self._collect(record)
        self._on_event(value, timestamp, self._watermark_output)


@cython.final
cdef class MapCall:
    """Replaces the value of each record by the result of a function.

    Parameters
    ----------
    function : callable
    conversion : callable or None
        Takes the result of the function, and returns a value of the declared type.
    collect : callable
    failed, misfit : callable
        Return the error to raise after an exception of the function, from the method's name, the record and the exception; and of
        the conversion, from the method's name, the value, the record and the exception.
    """

    cdef object _function
    cdef object _conversion
    cdef object _collect
    cdef object _failed
    cdef object _misfit

    def __cinit__(self, function, conversion, collect, failed, misfit):
        self._function = function
        self._conversion = conversion
        self._collect = collect
        self._failed = failed
        self._misfit = misfit

    @cython.binding(False)
    def process(self, StreamRecord record not None):
        """Process a record."""
        cdef object value
        try:
            value = self._function(record.value)
        except Exception as failure:
            raise self._failed("map", record, failure) from failure
        if self._conversion is not None:
            try:
                value = _converted(self._conversion, value)
            except Exception as failure:
                raise self._misfit("map", value, record, failure) from failure
        record.value = value
        self._collect(record)


@cython.final
cdef class FilterCall:
    """Forwards the records for whose values a function returns true; parameters as for :class:`MapCall`."""

    cdef object _function
    cdef object _conversion
    cdef object _collect
    cdef object _failed
    cdef object _misfit

    def __cinit__(self, function, conversion, collect, failed, misfit):
        self._function = function
        self._conversion = conversion
        self._collect = collect
        self._failed = failed
        self._misfit = misfit

    @cython.binding(False)
    def process(self, StreamRecord record not None):
        """Process a record."""
        cdef bint passes
        try:
            passes = self._function(record.value)
        except Exception as failure:
            raise self._failed("filter", record, failure) from failure
        if passes:
            if self._conversion is not None:
                try:
                    record.value = _converted(self._conversion, record.value)
                except Exception as failure:
                    raise self._misfit("filter", record.value, record, failure) from failure
            self._collect(record)


@cython.final
cdef class ReduceCall:
    """Replaces the value of each record by the reduction of all values of its key so far.

    Parameters
    ----------
    current_key : CurrentKey
    state : CurrentKeyValues
        Holds the reduced values.
    select_key : callable
    reduce : callable
    begin : callable or None
        Called with the first value of each key.
    conversion, collect, failed, misfit
        As of :class:`MapCall`.
    key_failed : callable
        As for :class:`CallOfKey`.
    """

    cdef CurrentKey _current_key
    cdef CurrentKeyValues _state
    cdef object _select_key
    cdef object _reduce
    cdef object _begin
    cdef object _conversion
    cdef object _collect
    cdef object _failed
    cdef object _misfit
    cdef object _key_failed

    def __cinit__(
        self,
        CurrentKey current_key not None,
        CurrentKeyValues state not None,
        select_key,
        reduce,
        begin,
        conversion,
        collect,
        failed,
        misfit,
        key_failed,
    ):
        self._current_key = current_key
        self._state = state
        self._select_key = select_key
        self._reduce = reduce
        self._begin = begin
        self._conversion = conversion
        self._collect = collect
        self._failed = failed
        self._misfit = misfit
        self._key_failed = key_failed

    @cython.binding(False)
    def process(self, StreamRecord record not None):
        """Process a record."""
        cdef object before, value = record.value
        self._current_key.set_key(_selected_key(self._select_key, self._key_failed, record))
        before = self._state._value()
        if before is not None:
            try:
                value = self._reduce(before, value)
            except Exception as failure:
                raise self._failed("reduce", record, failure) from failure
            if self._conversion is not None:
                try:
                    value = _converted(self._conversion, value)
                except Exception as failure:
                    raise self._misfit("reduce", value, record, failure) from failure
            record.value = value
        elif self._begin is not None:
            self._begin(value)
        self._state.replace(value)
        self._collect(record)


@cython.final
cdef class OpenPaneCall(CallOfKey):
    """Adds elements to open panes: the contents, for one key, of the windows of a slot, which is a range of timestamps.

    Parameters
    ----------
    current_key, cleanups, select_key, key_failed
        As for :class:`CallOfKey`.
    create : callable or None
        Takes the first element of a pane, and returns its contents; None if the element itself is the contents.
    add : callable or None
        Takes a further element and the contents, and returns the contents; None if they are a list of all elements.
    contents_first : bool
        True if `add` takes the contents before the element.
    register_timer : callable
        Takes a window and the time of a timer, in ms since the epoch.
    lateness_ms : int
        Allowed lateness: with one, a window has a timer after its end, too.
    process_elsewhere : callable
        Takes the key and the record of an element of another slot, or without a time or value. Returns True if it has opened
        the slot of the element, which is then added to it, and False if it has processed the element.
    drop : callable
        Called with a window and a key id when an aggregation has returned None.
    failed : callable
        Takes a record and the exception of a function, and returns the error to raise.
    """

    cdef object _create
    cdef object _add
    cdef bint _contents_first
    cdef object _register_timer
    cdef int64_t _lateness_ms
    cdef object _process_elsewhere
    cdef object _drop
    cdef object _failed
    cdef int64_t _low_ms
    cdef int64_t _high_ms
    cdef list _panes

    def __cinit__(
        self,
        current_key,
        cleanups,
        select_key,
        key_failed,
        create,
        add,
        bint contents_first,
        register_timer,
        int64_t lateness_ms,
        process_elsewhere,
        drop,
        failed,
    ):
        self._create = create
        self._add = add
        self._contents_first = contents_first
        self._register_timer = register_timer
        self._lateness_ms = lateness_ms
        self._process_elsewhere = process_elsewhere
        self._drop = drop
        self._failed = failed
        self.close()

    def open(self, int64_t low_ms, int64_t high_ms, list panes not None):
        """Add elements with timestamps from `low_ms` to below `high_ms` to panes: window, its end and contents by key id."""
        self._low_ms = low_ms
        self._high_ms = high_ms
        self._panes = panes

    def close(self):
        """Close the open panes."""
        self.open(0, 0, [])

    cdef bint _is_open(self, StreamRecord record) except -1:
        cdef int beyond = 0
        cdef int64_t timestamp_ms
        if type(record.timestamp) is not int or record.value is None:
            return False
        timestamp_ms = PyLong_AsLongLongAndOverflow(record.timestamp, &beyond)
        return not beyond and self._low_ms <= timestamp_ms < self._high_ms

    cdef int _process(self, object key, StreamRecord record) except -1:
        cdef object window, end_ms, of_keys, contents, value = record.value
        cdef PyObject* held
        cdef list panes
        if not self._is_open(record) and not self._process_elsewhere(key, record):
            return 0
        CallOfKey._process(self, key, record)
        panes = self._panes
        try:
            for window, end_ms, of_keys in panes:
                held = PyDict_GetItemWithError(of_keys, self._current_key.current_key_id)
                if held == NULL:
                    contents = self._first(value)
                    self._register_timer(window, end_ms)
                    if self._lateness_ms and end_ms < INT64_MAX - self._lateness_ms:
                        self._register_timer(window, end_ms + self._lateness_ms)
                else:
                    contents = <object> held
                    if self._add is None:
                        (<list> contents).append(value)
                        continue
                    if self._contents_first:
                        contents = self._add(contents, value)
                    else:
                        contents = self._add(value, contents)
                if contents is None:
                    self._drop(window, self._current_key.current_key_id)
                else:
                    PyDict_SetItem(of_keys, self._current_key.current_key_id, contents)
        except Exception as failure:
            raise self._failed(record, failure) from failure
        return 0

    cdef object _first(self, object value):
        if self._add is None:
            return [value]
        return value if self._create is None else self._create(value)


# ---- elements in the order of their arrival ----------------------------------------------------------------------


cdef class ArrivalClock:
    """Clock of a job, in ms since the epoch.

    Attributes
    ----------
    now_ms : int
        Current time. May be set to the time of an arrival.
    next_due_ms : int
        Lower bound of the times of waiting timers; 2**63 - 1 without one.

    Notes
    -----
    A subclass has `fire_before`, which fires all timers due before a time.
    """

    cdef public int64_t now_ms
    cdef public int64_t next_due_ms


def emit_elements(list values not None, arrivals, ArrivalClock clock not None, process):
    """Process elements in order, each at its arrival.

    Parameters
    ----------
    values : list
    arrivals : iterable of int
        Arrival of each element, in ms since the epoch.
    clock : ArrivalClock
    process : callable
        Takes a record, the same object for all elements, which it may change.
    """
    cdef StreamRecord record = _new_record(None, None)
    cdef int64_t arrival_ms
    cdef object value, arrival, times = iter(arrivals)
    for value in values:
        arrival = next(times)
        arrival_ms = arrival
        if clock.next_due_ms < arrival_ms:
            clock.fire_before(arrival)
        clock.now_ms = arrival_ms
        record.value = value
        record.timestamp = None
        process(record)
