"""Keys from a key selector class, composite keys, and a keyed stream that is keyed anew."""

from pyflink.common import Types
from pyflink.datastream import KeySelector, StreamExecutionEnvironment

SALES = [
    ("north", "pen", 2),
    ("south", "pen", 3),
    ("north", "ink", 5),
    ("north", "pen", 7),
    ("south", "pen", 11),
]


class Region(KeySelector):
    def get_key(self, value):
        return value[0]


def run(env: StreamExecutionEnvironment):
    sales = env.from_collection(SALES, Types.TUPLE([Types.STRING(), Types.STRING(), Types.INT()]))
    by_region = sales.key_by(Region(), key_type=Types.STRING())
    by_both = by_region.key_by(
        lambda sale: (sale[0], sale[1]), key_type=Types.TUPLE([Types.STRING(), Types.STRING()])
    )
    collected = {}
    for name, keyed in {"region": by_region, "both": by_both}.items():
        with keyed.sum(2).execute_and_collect() as results:
            collected[name] = list(results)
    return collected
