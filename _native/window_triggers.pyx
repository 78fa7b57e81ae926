"""When windows fire, and whether that empties them."""

from flinkcore.errors import ConfigurationError


cdef Trigger window_trigger(str name, int64_t every, bint purges) except *:
    cdef Trigger trigger
    trigger.every = every
    trigger.purges = purges
    if name == "event_time":
        trigger.kind = TriggerKind.ON_EVENT_TIME
    elif name == "count":
        trigger.kind = TriggerKind.ON_COUNT
        trigger.every = max(every, 1)  # with counts below one, Flink's fires at every row
    elif name == "continuous_event_time":
        trigger.kind = TriggerKind.ON_CONTINUOUS_EVENT_TIME
        if not 0 < every <= 2**60:
            raise ConfigurationError(f"a continuous trigger of {every} ms: the interval must be above zero, and at most 2**60")
    else:
        raise ConfigurationError(f"no trigger over columns is named {name!r}")
    return trigger
