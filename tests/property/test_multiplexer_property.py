"""The multiplexer against a model that looks at all outputs at each update."""

from equipment.recorders import WatermarkOutputRecorder
from hypothesis import given, settings
from hypothesis import strategies as st
from models.multiplexer import MultiplexerModel, Partial

from flinkcore.common import Watermark, WatermarkOutput
from flinkcore.elements.sources.watermark_output_multiplexer import WatermarkOutputMultiplexer

# Watermarks and marks of outputs are most frequent; a handle may be older than the output registered by its id.
CALLS = st.one_of(
    st.tuples(st.sampled_from(["register", "unregister"]), st.integers(0, 5)),
    *[
        st.tuples(
            st.just("call"),
            st.integers(0, 20),
            st.booleans(),
            st.one_of(st.integers(-3, 12), st.sampled_from(["idle", "active"])),
        )
    ]
    * 4,
    st.tuples(st.just("periodic")),
)


@settings(deadline=None, max_examples=600)
@given(st.lists(CALLS, max_size=120))
def test_the_multiplexer_does_what_the_model_does(calls: list[tuple[object, ...]]) -> None:
    output = WatermarkOutputRecorder()
    multiplexer = WatermarkOutputMultiplexer(output)
    model = MultiplexerModel()
    handles: list[tuple[WatermarkOutput, WatermarkOutput, Partial]] = []
    for verb, *arguments in calls:
        expected: list[tuple[str, int | str]] = []
        if verb == "register" and str(arguments[0]) not in model.partials:
            output_id = str(arguments[0])
            multiplexer.register_new_output(output_id)
            immediate = multiplexer.get_immediate_output(output_id)
            deferred = multiplexer.get_deferred_output(output_id)
            handles.append((immediate, deferred, model.register(output_id)))
        elif verb == "unregister":
            output_id = str(arguments[0])
            assert multiplexer.unregister_output(output_id) == model.unregister(output_id)
        elif verb == "periodic":
            multiplexer.on_periodic_emit()
            expected = model.update()
        elif verb == "call" and handles:
            index, is_immediate, what = arguments
            immediate, deferred, partial = handles[-1 - index % len(handles)]  # type: ignore[operator]
            handle = immediate if is_immediate else deferred
            if isinstance(what, int):
                handle.emit_watermark(Watermark(what))
                expected = model.emit_watermark(partial, what, bool(is_immediate))
            else:
                (handle.mark_idle if what == "idle" else handle.mark_active)()
                expected = model.mark(partial, what == "idle", bool(is_immediate))
        assert output.take() == expected
