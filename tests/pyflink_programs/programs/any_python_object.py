"""Without a type, values are any Python objects: dicts, sets, objects of one's own."""

from pyflink.datastream import StreamExecutionEnvironment


def run(env: StreamExecutionEnvironment):
    tags = env.from_collection([{"id": 1, "tags": {"x", "y"}}, {"id": 2, "tags": set()}])
    listed = tags.map(lambda event: {**event, "tags": sorted(event["tags"]), "pair": (event["id"], None)})
    ids = listed.key_by(lambda event: event["id"] % 2).map(lambda event: [event["id"], event["tags"]])
    with ids.execute_and_collect() as results:
        return list(results)
