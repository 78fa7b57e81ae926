import java.io.PrintWriter;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.CoGroupFunction;
import org.apache.flink.api.common.functions.FlatJoinFunction;
import org.apache.flink.api.common.functions.JoinFunction;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.memory.ManagedMemoryUseCase;
import org.apache.flink.runtime.jobgraph.OperatorID;
import org.apache.flink.runtime.state.heap.HeapKeyedStateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.co.ProcessJoinFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.graph.StreamConfig;
import org.apache.flink.streaming.api.operators.AbstractStreamOperator;
import org.apache.flink.streaming.api.operators.InternalTimeServiceManagerImpl;
import org.apache.flink.streaming.api.operators.OneInputStreamOperator;
import org.apache.flink.streaming.api.operators.Output;
import org.apache.flink.streaming.api.operators.StreamOperatorFactory;
import org.apache.flink.streaming.api.operators.StreamOperatorParameters;
import org.apache.flink.streaming.api.operators.StreamTaskStateInitializerImpl;
import org.apache.flink.streaming.api.operators.TwoInputStreamOperator;
import org.apache.flink.streaming.api.transformations.OneInputTransformation;
import org.apache.flink.streaming.api.transformations.TwoInputTransformation;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.evictors.CountEvictor;
import org.apache.flink.streaming.api.windowing.triggers.CountTrigger;
import org.apache.flink.streaming.api.windowing.triggers.PurgingTrigger;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.runtime.tasks.ProcessingTimeService;
import org.apache.flink.streaming.runtime.tasks.StreamTask;
import org.apache.flink.streaming.runtime.watermarkstatus.WatermarkStatus;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;
import org.apache.flink.util.TaggedUnion;

/**
 * JoinRecorder IN OUT: what Flink's joins do with the scenarios of IN, see README.md.
 *
 * <p>The public API (intervalJoin, coGroup, join) builds the operator, which is then driven by hand inside
 * the task of a job of one record.
 */
@SuppressWarnings({"unchecked", "rawtypes"})
public final class JoinRecorder {
    static final ObjectMapper JSON = new ObjectMapper();
    static final TypeInformation<Tuple2<String, Long>> ELEMENT = Types.TUPLE(Types.STRING, Types.LONG);
    static final TypeInformation<JsonNode> RESULT = TypeInformation.of(JsonNode.class);
    static StreamTask<?, ?> task;
    static Runnable work;
    static ArrayNode entries;
    static int at;

    public static void main(String[] args) throws Exception {
        List<String> answers = new ArrayList<>();
        List<String> lines = Files.readAllLines(Path.of(args[0]));
        work =
                () -> {
                    for (String line : lines) {
                        answers.add(answer(line));
                    }
                };
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        env.setMaxParallelism(128);
        env.fromSequence(1, 1).transform("host", Types.LONG, new Host()).sinkTo(new DiscardingSink<>());
        env.execute();
        try (PrintWriter out = new PrintWriter(args[1])) {
            answers.forEach(out::println);
        }
        System.exit(0);
    }

    /** Gives the operators a genuine task to live in. */
    static final class Host extends AbstractStreamOperator<Long> implements OneInputStreamOperator<Long, Long> {
        @Override
        public void processElement(StreamRecord<Long> record) {
            task = getContainingTask();
            work.run();
        }
    }

    static String answer(String line) {
        try {
            ObjectNode scenario = (ObjectNode) JSON.readTree(line);
            entries = JSON.createArrayNode();
            at = -1;
            ObjectNode output = JSON.createObjectNode();
            output.set("entries", entries);
            try {
                run(scenario.get("kind").asText(), scenario.get("input"), output);
            } catch (Exception error) {
                entry("error").put("class", error.getClass().getName()).put("message", error.getMessage());
            }
            scenario.set("output", output);
            return JSON.writeValueAsString(scenario);
        } catch (Exception error) {
            throw new IllegalStateException(line, error);
        }
    }

    static void run(String kind, JsonNode in, ObjectNode output) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        KeyedStream<Tuple2<String, Long>, String> left = stream(env), right = stream(env);
        AbstractStreamOperator<?> operator = null;
        try {
            operator = kind.equals("interval_join") ? interval(left, right, in) : window(left, right, in);
            JsonNode events = in.get("events");
            for (at = 0; at < events.size(); at++) {
                apply(operator, events.get(at));
            }
        } finally {
            if (operator != null) {
                Field manager = AbstractStreamOperator.class.getDeclaredField("timeServiceManager");
                manager.setAccessible(true);
                output.put("timers", ((InternalTimeServiceManagerImpl<?>) manager.get(operator)).numEventTimeTimers());
                Object backend = operator.getKeyedStateBackend();
                output.put("state", ((HeapKeyedStateBackend<?>) backend).numKeyValueStateEntries());
                operator.close();
            }
        }
    }

    static KeyedStream<Tuple2<String, Long>, String> stream(StreamExecutionEnvironment env) {
        return env.fromSequence(1, 1).map(x -> Tuple2.of("", x)).returns(ELEMENT).keyBy(t -> t.f0, Types.STRING);
    }

    // ---- events ----

    static void apply(AbstractStreamOperator<?> operator, JsonNode event) throws Exception {
        String verb = event.get(0).asText();
        JsonNode argument = event.get(1);
        switch (verb) {
            case "l", "r" -> element(operator, verb.equals("l"), event);
            case "w" -> ((OneInputStreamOperator) operator).processWatermark(new Watermark(argument.asLong()));
            case "w1" -> ((TwoInputStreamOperator) operator).processWatermark1(new Watermark(argument.asLong()));
            case "w2" -> ((TwoInputStreamOperator) operator).processWatermark2(new Watermark(argument.asLong()));
            case "s1" -> ((TwoInputStreamOperator) operator).processWatermarkStatus1(status(argument));
            case "s2" -> ((TwoInputStreamOperator) operator).processWatermarkStatus2(status(argument));
            default -> throw new IllegalArgumentException(verb);
        }
    }

    static WatermarkStatus status(JsonNode status) {
        return status.asText().equals("idle") ? WatermarkStatus.IDLE : WatermarkStatus.ACTIVE;
    }

    static void element(AbstractStreamOperator<?> operator, boolean isLeft, JsonNode event) throws Exception {
        Object value = Tuple2.of(event.get(2).asText(), event.get(3).asLong());
        if (operator instanceof OneInputStreamOperator) {
            value = isLeft ? TaggedUnion.one(value) : TaggedUnion.two(value);
        }
        StreamRecord record = new StreamRecord(value);
        if (!event.get(1).isNull()) {
            record.setTimestamp(event.get(1).asLong());
        }
        if (operator instanceof OneInputStreamOperator one) {
            one.setKeyContextElement(record);
            one.processElement(record);
        } else if (isLeft) {
            operator.setKeyContextElement1(record);
            ((TwoInputStreamOperator) operator).processElement1(record);
        } else {
            operator.setKeyContextElement2(record);
            ((TwoInputStreamOperator) operator).processElement2(record);
        }
    }

    // ---- operators ----

    static AbstractStreamOperator<?> interval(KeyedStream left, KeyedStream right, JsonNode in) throws Exception {
        KeyedStream.IntervalJoin join = left.intervalJoin(right);
        if (in.path("processing_time").asBoolean()) {
            join = join.inProcessingTime();
        }
        KeyedStream.IntervalJoined joined = join.between(ms(in.get("lower")), ms(in.get("upper")));
        joined = in.get("lower_exclusive").asBoolean() ? joined.lowerBoundExclusive() : joined;
        joined = in.get("upper_exclusive").asBoolean() ? joined.upperBoundExclusive() : joined;
        joined = in.get("left_late").asBoolean() ? joined.sideOutputLeftLateData(new OutputTag<>("left", ELEMENT)) : joined;
        joined = in.get("right_late").asBoolean() ? joined.sideOutputRightLateData(new OutputTag<>("right", ELEMENT)) : joined;
        TwoInputTransformation made = (TwoInputTransformation) joined.process(new Pairs(), RESULT).getTransformation();
        return operator(made.getOperatorFactory(), made.getStateKeySelector1(), made.getStateKeySelector2(), ELEMENT);
    }

    static AbstractStreamOperator<?> window(DataStream left, DataStream right, JsonNode in) throws Exception {
        KeySelector<Tuple2<String, Long>, String> key = t -> t.f0;
        String function = in.get("function").asText();
        Duration lateness = ms(in.get("allowed_lateness"));
        boolean purges = in.get("trigger").path("purging").asBoolean();
        CountTrigger count = in.get("trigger").has("count") ? CountTrigger.of(in.get("trigger").get("count").asLong()) : null;
        CountEvictor evictor = in.get("evictor").isNull() ? null : CountEvictor.of(in.get("evictor").asLong());
        DataStream result;
        if (function.equals("co_group")) {
            var joined = left.coGroup(right).where(key, Types.STRING).equalTo(key, Types.STRING).window(assigner(in.get("assigner")));
            joined = count == null ? joined : joined.trigger(purges ? PurgingTrigger.of(count) : count);
            joined = evictor == null ? joined : joined.evictor(evictor);
            result = joined.allowedLateness(lateness).apply(new Groups(), RESULT);
        } else {
            var joined = left.join(right).where(key, Types.STRING).equalTo(key, Types.STRING).window(assigner(in.get("assigner")));
            joined = count == null ? joined : joined.trigger(purges ? PurgingTrigger.of(count) : count);
            joined = evictor == null ? joined : joined.evictor(evictor);
            joined = joined.allowedLateness(lateness);
            result = function.equals("join") ? joined.apply(new Join(), RESULT) : joined.apply(new FlatJoin(), RESULT);
        }
        OneInputTransformation made = (OneInputTransformation) result.getTransformation();
        return operator(made.getOperatorFactory(), made.getStateKeySelector(), null, made.getInputType());
    }

    static WindowAssigner assigner(JsonNode assigner) {
        Duration size = ms(assigner.get(1));
        return switch (assigner.get(0).asText()) {
            case "tumbling" -> TumblingEventTimeWindows.of(size);
            case "sliding" -> SlidingEventTimeWindows.of(size, ms(assigner.get(2)));
            default -> EventTimeSessionWindows.withGap(size);
        };
    }

    static AbstractStreamOperator<?> operator(
            StreamOperatorFactory factory, KeySelector key1, KeySelector key2, TypeInformation input) throws Exception {
        StreamConfig config = new StreamConfig(new Configuration());
        config.setOperatorID(new OperatorID());
        config.setOperatorName("join");
        config.setupNetworkInputs(input.createSerializer(task.getExecutionConfig().getSerializerConfig()));
        config.setManagedMemoryFractionOperatorOfUseCase(ManagedMemoryUseCase.STATE_BACKEND, 0.1);
        config.setStatePartitioner(0, key1);
        if (key2 != null) {
            config.setStatePartitioner(1, key2);
        }
        config.setStateKeySerializer(Types.STRING.createSerializer(task.getExecutionConfig().getSerializerConfig()));
        config.serializeAllConfigs();
        AbstractStreamOperator<?> operator =
                (AbstractStreamOperator<?>)
                        factory.createStreamOperator(
                                new StreamOperatorParameters(task, config, proxy(Output.class), () -> clock(), null, null));
        operator.initializeState(new StreamTaskStateInitializerImpl(task.getEnvironment(), new HashMapStateBackend()));
        operator.open();
        return operator;
    }

    /** A clock that is not asked for: there is no processing time in these scenarios. */
    static ProcessingTimeService clock() {
        return task.getProcessingTimeServiceFactory().createProcessingTimeService(null);
    }

    static Duration ms(JsonNode node) {
        return Duration.ofMillis(node.asLong());
    }

    // ---- functions ----

    static final class Pairs extends ProcessJoinFunction<Tuple2<String, Long>, Tuple2<String, Long>, JsonNode> {
        @Override
        public void processElement(
                Tuple2<String, Long> left, Tuple2<String, Long> right, Context context, Collector<JsonNode> out) {
            out.collect(
                    JSON.createArrayNode()
                            .add(left.f1)
                            .add(right.f1)
                            .add(context.getLeftTimestamp())
                            .add(context.getRightTimestamp())
                            .add(context.getTimestamp()));
            if (right.f1 % 5 == 0) {
                context.output(new OutputTag<>("fives", Types.LONG), left.f1);
            }
        }
    }

    static final class Groups implements CoGroupFunction<Tuple2<String, Long>, Tuple2<String, Long>, JsonNode> {
        @Override
        public void coGroup(
                Iterable<Tuple2<String, Long>> first, Iterable<Tuple2<String, Long>> second, Collector<JsonNode> out) {
            ArrayNode groups = JSON.createArrayNode();
            ArrayNode one = JSON.createArrayNode(), two = JSON.createArrayNode();
            first.forEach(t -> one.add(t.f1));
            second.forEach(t -> two.add(t.f1));
            String key = (one.isEmpty() ? second : first).iterator().next().f0;
            out.collect(groups.add(key).add(one).add(two));
        }
    }

    static final class Join implements JoinFunction<Tuple2<String, Long>, Tuple2<String, Long>, JsonNode> {
        @Override
        public JsonNode join(Tuple2<String, Long> first, Tuple2<String, Long> second) {
            return JSON.createArrayNode().add(first.f0).add(first.f1).add(second.f1);
        }
    }

    /** As many results as the sum of both has for a remainder. */
    static final class FlatJoin implements FlatJoinFunction<Tuple2<String, Long>, Tuple2<String, Long>, JsonNode> {
        @Override
        public void join(Tuple2<String, Long> first, Tuple2<String, Long> second, Collector<JsonNode> out) {
            for (long i = 0; i < (first.f1 + second.f1) % 3; i++) {
                out.collect(JSON.createArrayNode().add(first.f0).add(first.f1).add(second.f1).add(i));
            }
        }
    }

    // ---- output ----

    static ObjectNode entry(String type) {
        return entries.addObject().put("at", at).put("type", type);
    }

    static void record(ObjectNode entry, StreamRecord<?> record) {
        Object value = record.getValue() instanceof Tuple2<?, ?> pair ? pair.f1 : record.getValue();
        entry.put("ts", record.hasTimestamp() ? (Long) record.getTimestamp() : null).set("value", JSON.valueToTree(value));
    }

    static <T> T proxy(Class<T> face) {
        return (T)
                Proxy.newProxyInstance(
                        JoinRecorder.class.getClassLoader(),
                        new Class<?>[] {face},
                        (self, method, args) -> {
                            switch (method.getName()) {
                                case "collect" -> {
                                    if (args.length == 1) {
                                        record(entry("record"), (StreamRecord<?>) args[0]);
                                    } else {
                                        ObjectNode side = entry("side").put("tag", ((OutputTag<?>) args[0]).getId());
                                        record(side, (StreamRecord<?>) args[1]);
                                    }
                                }
                                case "emitWatermark" -> entry("watermark").put("ts", ((Watermark) args[0]).getTimestamp());
                                case "emitWatermarkStatus" ->
                                        entry("status")
                                                .put("status", ((WatermarkStatus) args[0]).isActive() ? "active" : "idle");
                                case "close" -> {}
                                default -> throw new IllegalStateException("unexpected call " + method);
                            }
                            return null;
                        });
    }
}
