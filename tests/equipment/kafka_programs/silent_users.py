"""Tells which users have been silent for five seconds, by the timestamps of Kafka."""

import json

from pyflink.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from pyflink.datastream.connectors.kafka import KafkaOffsetResetStrategy, KafkaOffsetsInitializer, KafkaSource
from pyflink.datastream.state import ValueStateDescriptor


class Silence(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext):
        self.last = runtime_context.get_state(ValueStateDescriptor("last", Types.LONG()))

    def process_element(self, value, ctx):
        last = self.last.value()
        if last is None or ctx.timestamp() > last:
            self.last.update(ctx.timestamp())
            ctx.timer_service().register_event_time_timer(ctx.timestamp() + 5000)

    def on_timer(self, timestamp, ctx):
        if self.last.value() + 5000 == timestamp:
            yield f"{ctx.get_current_key()} silent at {timestamp}"


env = StreamExecutionEnvironment.get_execution_environment()
source = (
    KafkaSource.builder()
    .set_bootstrap_servers("broker:9092")
    .set_topics("clicks")
    .set_group_id("silence")
    .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST))
    .set_value_only_deserializer(SimpleStringSchema())
    .build()
)
clicks = env.from_source(
    source, WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1)), "clicks"
)
silent = clicks.map(json.loads).key_by(lambda click: click["user"]).process(Silence(), Types.STRING())
silent.print()
env.execute("silence")
