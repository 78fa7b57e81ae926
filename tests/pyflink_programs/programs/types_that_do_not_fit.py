"""Values that are not of the declared type: an error where they leave a chain of functions, unseen within it."""

from pyflink.common import Row, Types
from pyflink.datastream import OutputTag, ProcessFunction

PAIR = Types.TUPLE([Types.INT(), Types.STRING()])
SIDE = OutputTag("side", Types.INT())


class ToSide(ProcessFunction):
    def process_element(self, value, ctx):
        yield value
        yield SIDE, "not a number"


def outcome(stream):
    """What is collected, or that the job fails."""
    try:
        return list(stream.execute_and_collect())
    except Exception:
        return "refused"


def given(env, value, declared):
    return env.from_collection([0], Types.INT()).map(lambda _: value, declared)


def run(env):
    return {
        "at the end": [
            outcome(given(env, "x", Types.INT())),
            outcome(given(env, b"x", Types.INT())),
            outcome(given(env, 2**63, Types.LONG())),
            outcome(given(env, 5, Types.STRING())),
            outcome(given(env, "x", Types.BOOLEAN())),
            outcome(given(env, "1.5", Types.DOUBLE())),
            outcome(given(env, (1, 2), PAIR)),
            outcome(given(env, (1, "a", 3), Types.TUPLE([Types.INT(), PAIR]))),
            outcome(given(env, Row("a", 1), Types.ROW([Types.INT(), Types.STRING()]))),
            outcome(given(env, ["a"], Types.LIST(Types.INT()))),
            outcome(given(env, {1: "a"}, Types.MAP(Types.STRING(), Types.INT()))),
        ],
        "before keys, and others": [
            outcome(given(env, "x", Types.INT()).rebalance().map(lambda value: value, Types.STRING())),
            outcome(
                given(env, "x", Types.INT()).key_by(lambda value: 1).map(lambda value: value, Types.STRING())
            ),
            outcome(given(env, 1, Types.INT()).key_by(lambda value: "x", Types.INT()).reduce(lambda a, b: a)),
            outcome(given(env, 1, Types.INT()).process(ToSide(), Types.INT()).get_side_output(SIDE)),
        ],
        "within a chain": [
            outcome(given(env, "x", Types.INT()).map(lambda value: value * 2, Types.STRING())),
            outcome(
                given(env, {"n": 1}, PAIR)
                .filter(lambda value: "n" in value)
                .map(lambda value: value["n"], Types.INT())
            ),
            outcome(given(env, [1, 2], PAIR).map(lambda value: str(value), Types.STRING())),
            outcome(given(env, 0.1, Types.FLOAT()).map(lambda value: value * 3, Types.DOUBLE())),
            outcome(
                given(env, Row(1, 2), Types.ROW_NAMED(["a", "b"], [Types.INT()] * 2)).map(str, Types.STRING())
            ),
            outcome(given(env, "x", Types.INT()).filter(lambda value: True)),
        ],
    }
