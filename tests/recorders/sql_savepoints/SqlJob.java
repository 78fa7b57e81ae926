import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.minicluster.RpcServiceSharing;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.legacy.SinkFunction;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.table.api.PlanReference;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.TableDescriptor;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.api.internal.TableEnvironmentImpl;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.table.catalog.ResolvedSchema;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.ProviderContext;
import org.apache.flink.table.connector.format.DecodingFormat;
import org.apache.flink.table.connector.sink.DataStreamSinkProvider;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.source.DataStreamScanProvider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.delegation.Planner;
import org.apache.flink.table.factories.DeserializationFormatFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.utils.LogicalTypeUtils;
import org.apache.flink.table.types.utils.TypeConversions;
import org.apache.flink.types.Row;

/**
 * Runs jobs of Flink SQL, each over a part of its rows, with savepoints between them: a line of JSON in, a line of JSON
 * out, until the input ends.
 *
 * <p>{@code {"compile": CREATE TABLE, "query": SELECT}} answers with a plan. {@code {"plan": PLAN, "tables": {NAME: FILE}}} runs a plan and
 * answers with the rows of its sink; {@code "from"} is a savepoint to begin with, {@code "to"} one to stop with.
 */
public final class SqlJob {
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, String> FILES = new ConcurrentHashMap<>();
    static final List<ArrayNode> ROWS = new ArrayList<>();
    static final AtomicInteger READ = new AtomicInteger();
    static volatile boolean ends;

    private SqlJob() {}

    public static void main(String[] arguments) throws Exception {
        Path scratch = Path.of(arguments[0]);
        MiniCluster cluster = cluster(scratch);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode answer = JSON.createObjectNode();
            try {
                JsonNode asked = JSON.readTree(line);
                if (asked.has("compile")) {
                    answer.set("plan", JSON.readTree(compiled(asked)));
                } else {
                    run(cluster, scratch, asked, answer);
                }
            } catch (Throwable failure) {
                Throwable cause = failure;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer.put("error", cause.toString());
            }
            System.out.println(answer);
        }
        cluster.close();
        System.exit(0);
    }

    private static MiniCluster cluster(Path scratch) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("rest.port", "0");
        settings.setString("rest.bind-port", "0");
        settings.setString("execution.checkpointing.storage", "filesystem");
        settings.setString("execution.checkpointing.dir", scratch.resolve("checkpoints").toUri().toString());
        settings.setString("taskmanager.memory.network.min", "64mb");
        settings.setString("taskmanager.memory.network.max", "64mb");
        settings.setString("taskmanager.memory.managed.size", "256mb");
        settings.setString("io.tmp.dirs", scratch.toString());
        MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(settings)
                .setNumTaskManagers(1).setNumSlotsPerTaskManager(4)
                .setRpcServiceSharing(RpcServiceSharing.SHARED).build());
        cluster.start();
        return cluster;
    }

    private static StreamTableEnvironment tables(StreamExecutionEnvironment environment, JsonNode asked) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment);
        tables.getConfig().set("pipeline.auto-watermark-interval", "0 ms");
        if (asked.has("settings")) {
            Iterator<Map.Entry<String, JsonNode>> all = asked.get("settings").fields();
            while (all.hasNext()) {
                Map.Entry<String, JsonNode> each = all.next();
                tables.getConfig().set(each.getKey(), each.getValue().asText());
            }
        }
        return tables;
    }

    private static String compiled(JsonNode asked) {
        StreamTableEnvironment tables =
                tables(StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration()), asked);
        tables.executeSql(asked.get("compile").asText().trim().replaceAll(";$", ""));
        String query = asked.get("query").asText();
        TableDescriptor sink = TableDescriptor.forConnector("lines")
                .schema(Schema.newBuilder().fromResolvedSchema(columnsOf(tables.sqlQuery(query))).build()).build();
        tables.createTable("results", sink);
        return tables.compilePlanSql("INSERT INTO results " + query).asJsonString();
    }

    /** Returns the columns of a query by number: names of its own may be there twice, and rowtimes become columns. */
    private static ResolvedSchema columnsOf(Table query) {
        List<Column> columns = new ArrayList<>();
        for (DataType type : query.getResolvedSchema().getColumnDataTypes()) {
            DataType plain = TypeConversions.fromLogicalToDataType(
                    LogicalTypeUtils.removeTimeAttributes(type.getLogicalType()));
            columns.add(Column.physical("c" + columns.size(), plain));
        }
        return ResolvedSchema.of(columns);
    }

    private static void run(MiniCluster cluster, Path scratch, JsonNode asked, ObjectNode answer) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("state.backend.type", asked.path("backend").asText("hashmap"));
        settings.setString("restart-strategy.type", "none");
        settings.setString("execution.checkpointing.data-inline-threshold", "1048576b");
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(
                asked.path("parallelism").asInt(1), settings);
        environment.setMaxParallelism(asked.path("max_parallelism").asInt(128));
        StreamTableEnvironment tables = tables(environment, asked);
        FILES.clear();
        ROWS.clear();
        READ.set(0);
        Iterator<Map.Entry<String, JsonNode>> all = asked.get("tables").fields();
        while (all.hasNext()) {
            Map.Entry<String, JsonNode> each = all.next();
            FILES.put(each.getKey(), each.getValue().asText());
        }
        ends = !asked.has("to");
        Planner planner = ((TableEnvironmentImpl) tables).getPlanner();
        PlanReference plan = PlanReference.fromJsonString(asked.get("plan").toString());
        JobGraph graph = environment.generateStreamGraph(planner.translatePlan(planner.loadPlan(plan))).getJobGraph();
        if (asked.has("from")) {
            String from = Path.of(asked.get("from").asText()).toUri().toString();
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(from, false));
        }
        cluster.submitJob(graph).get();
        JobID job = graph.getJobID();
        if (!ends) {
            stop(cluster, job, scratch, Path.of(asked.get("to").asText()));
        }
        cluster.requestJobResult(job).get(60, TimeUnit.SECONDS)
                .toJobExecutionResult(SqlJob.class.getClassLoader());
        ArrayNode rows = answer.putArray("rows");
        synchronized (ROWS) {
            rows.addAll(ROWS);
        }
    }

    private static void stop(MiniCluster cluster, JobID job, Path scratch, Path to) throws Exception {
        for (int i = 0; i < 600 && !cluster.getJobStatus(job).get().isTerminalState(); i++) {
            if (READ.get() == FILES.size()) {
                try {
                    String made = cluster.stopWithSavepoint(job, scratch.resolve("savepoints").toUri().toString(),
                            false, SavepointFormatType.CANONICAL).get(60, TimeUnit.SECONDS);
                    Files.createDirectories(to.getParent());
                    Files.move(Path.of(java.net.URI.create(made)), to);
                    return;
                } catch (Exception failure) {
                    if (!String.valueOf(failure).contains("Not all required tasks")) {
                        throw failure;
                    }
                }
            }
            Thread.sleep(50);
        }
        cluster.requestJobResult(job).get(5, TimeUnit.SECONDS).toJobExecutionResult(SqlJob.class.getClassLoader());
        throw new IllegalStateException("the sources did not end");
    }

    /** The connector "lines": a table reads a file of JSON, or collects the rows of the job. */
    public static final class Lines implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        @Override
        public String factoryIdentifier() {
            return "lines";
        }

        @Override
        public Set<org.apache.flink.configuration.ConfigOption<?>> requiredOptions() {
            return Set.of();
        }

        @Override
        public Set<org.apache.flink.configuration.ConfigOption<?>> optionalOptions() {
            return Set.of(FactoryUtil.FORMAT);
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            FactoryUtil.TableFactoryHelper helper = FactoryUtil.createTableFactoryHelper(this, context);
            DecodingFormat<DeserializationSchema<RowData>> format =
                    helper.discoverDecodingFormat(DeserializationFormatFactory.class, FactoryUtil.FORMAT);
            return new LinesSource(
                    context.getObjectIdentifier().getObjectName(), format, context.getPhysicalRowDataType());
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            return new LinesSink(context.getPhysicalRowDataType());
        }
    }

    private static final class LinesSource implements ScanTableSource {
        private final String table;
        private final DecodingFormat<DeserializationSchema<RowData>> format;
        private final DataType type;

        LinesSource(String table, DecodingFormat<DeserializationSchema<RowData>> format, DataType type) {
            this.table = table;
            this.format = format;
            this.type = type;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            DeserializationSchema<RowData> schema = format.createRuntimeDecoder(context, type);
            return new DataStreamScanProvider() {
                @Override
                public DataStream<RowData> produceDataStream(ProviderContext ctx, StreamExecutionEnvironment env) {
                    return env.addSource(new Read(table, schema), table, InternalTypeInfo.of(type.getLogicalType()))
                            .setParallelism(1);
                }

                @Override
                public boolean isBounded() {
                    return false;
                }
            };
        }

        @Override
        public DynamicTableSource copy() {
            return new LinesSource(table, format, type);
        }

        @Override
        public String asSummaryString() {
            return "lines";
        }
    }

    /** Emits the rows of a file, then waits for the savepoint, or ends. */
    @SuppressWarnings("deprecation")
    private static final class Read implements SourceFunction<RowData> {
        private final String table;
        private final DeserializationSchema<RowData> schema;
        private volatile boolean on = true;

        Read(String table, DeserializationSchema<RowData> schema) {
            this.table = table;
            this.schema = schema;
        }

        @Override
        public void run(SourceContext<RowData> context) throws Exception {
            schema.open(null);
            for (String line : Files.readAllLines(Path.of(FILES.get(table)))) {
                RowData row = schema.deserialize(line.getBytes(StandardCharsets.UTF_8));
                synchronized (context.getCheckpointLock()) {
                    context.collect(row);
                }
            }
            READ.incrementAndGet();
            while (on && !ends) {
                Thread.sleep(5);
            }
        }

        @Override
        public void cancel() {
            on = false;
        }
    }

    private static final class LinesSink implements DynamicTableSink {
        private final DataType type;

        LinesSink(DataType type) {
            this.type = type;
        }

        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            return requested;
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
            DataStructureConverter converter = context.createDataStructureConverter(type);
            return new DataStreamSinkProvider() {
                @Override
                public org.apache.flink.streaming.api.datastream.DataStreamSink<?> consumeDataStream(
                        ProviderContext ctx, DataStream<RowData> rows) {
                    return rows.addSink(new Collect(converter)).setParallelism(1);
                }
            };
        }

        @Override
        public DynamicTableSink copy() {
            return new LinesSink(type);
        }

        @Override
        public String asSummaryString() {
            return "lines";
        }
    }

    @SuppressWarnings("deprecation")
    private static final class Collect implements SinkFunction<RowData> {
        private final DynamicTableSink.DataStructureConverter converter;

        Collect(DynamicTableSink.DataStructureConverter converter) {
            this.converter = converter;
        }

        @Override
        public void invoke(RowData data, Context context) {
            Row row = (Row) converter.toExternal(data);
            ArrayNode found = JSON.createArrayNode().add(row.getKind().shortString());
            for (int i = 0; i < row.getArity(); i++) {
                Object value = row.getField(i);
                if (value == null || value instanceof Boolean || value instanceof Number && !(value instanceof BigDecimal)) {
                    found.addPOJO(value);
                } else {
                    found.add(value instanceof BigDecimal ? ((BigDecimal) value).toPlainString() : value.toString());
                }
            }
            synchronized (ROWS) {
                ROWS.add(found);
            }
        }
    }
}
