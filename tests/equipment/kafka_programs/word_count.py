"""Counts the words of messages in JSON, by windows of event time."""

from pyflink.common import Duration, Time, Types
from pyflink.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from pyflink.datastream.formats.json import JsonRowDeserializationSchema
from pyflink.datastream.functions import ProcessWindowFunction
from pyflink.datastream.window import TumblingEventTimeWindows


class SentAt(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value.sent_at


class Count(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield f"{context.window().start} {key} {sum(number for _, number in elements)}"


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    message = Types.ROW_NAMED(["text", "sent_at"], [Types.STRING(), Types.LONG()])
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers("broker:9092")
        .set_topics("messages")
        .set_group_id("word-count")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(JsonRowDeserializationSchema.builder().type_info(message).build())
        .build()
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    messages = env.from_source(source, strategy.with_timestamp_assigner(SentAt()), "messages")
    (
        messages.flat_map(
            lambda message: [(word, 1) for word in message.text.split()],
            Types.TUPLE([Types.STRING(), Types.INT()]),
        )
        .key_by(lambda pair: pair[0], Types.STRING())
        .window(TumblingEventTimeWindows.of(Time.seconds(10)))
        .process(Count(), Types.STRING())
        .print()
    )
    env.execute("word count")


if __name__ == "__main__":
    main()
