import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.GenericInMemoryCatalog;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.connector.source.abilities.SupportsProjectionPushDown;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.Factory;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.logical.LogicalTypeRoot;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.types.RowKind;

/**
 * A script of Flink SQL over columns that benchmarks/nexmark_log.py writes.
 *
 * <p>Whatever connectors the script names: sources read their events from memory-mapped files, one at a time, with those
 * columns that the query needs, and the sink adds up numbers of the rows and drops these.
 *
 * <p>Usage: NexmarkSql SCRIPT FOLDER PERSONS AUCTIONS BIDS SUMMED KEY. SCRIPT has a statement between lines of a
 * semicolon, the last one an insertion. SUMMED are the columns to add up, between commas. With a KEY that is not empty,
 * only the last row of each of its values counts. Prints one line of JSON.
 */
public final class NexmarkSql {

    // ---- sources ----

    private interface Column {
        Object get(int row);
    }

    private static MappedByteBuffer mapped(Path path) {
        try (FileChannel channel = FileChannel.open(path)) {
            MappedByteBuffer buffer = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            buffer.order(ByteOrder.LITTLE_ENDIAN);
            return buffer;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    private static Column column(Path path, LogicalTypeRoot type) {
        MappedByteBuffer values = mapped(path);
        if (type == LogicalTypeRoot.VARCHAR) {
            LongBuffer offsets = mapped(path.resolveSibling(path.getFileName() + ".offsets")).asLongBuffer();
            return row -> {
                int start = (int) offsets.get(row);
                byte[] text = new byte[(int) offsets.get(row + 1) - start];
                values.get(start, text);
                return StringData.fromBytes(text);
            };
        }
        LongBuffer numbers = values.asLongBuffer();
        if (type == LogicalTypeRoot.BIGINT) {
            return numbers::get;
        }
        return row -> TimestampData.fromEpochMillis(numbers.get(row));
    }

    private static final class Rows implements GeneratorFunction<Long, RowData> {
        private final String folder;
        private final String table;
        private final RowType type;
        private transient Column[] columns;

        Rows(String folder, String table, RowType type) {
            this.folder = folder;
            this.table = table;
            this.type = type;
        }

        @Override
        public RowData map(Long index) {
            if (columns == null) {
                columns =
                        type.getFields().stream()
                                .map(
                                        field ->
                                                column(
                                                        Path.of(folder, table + "." + field.getName()),
                                                        field.getType().getTypeRoot()))
                                .toArray(Column[]::new);
            }
            GenericRowData row = new GenericRowData(columns.length);
            for (int i = 0; i < columns.length; i++) {
                row.setField(i, columns[i].get(index.intValue()));
            }
            return row;
        }
    }

    private static final class Source implements ScanTableSource, SupportsProjectionPushDown {
        private final String folder;
        private final String table;
        private final long rows;
        private DataType type;

        Source(String folder, String table, long rows, DataType type) {
            this.folder = folder;
            this.table = table;
            this.rows = rows;
            this.type = type;
        }

        @Override
        public boolean supportsNestedProjection() {
            return false;
        }

        @Override
        public void applyProjection(int[][] fields, DataType produced) {
            type = produced;
        }

        @Override
        public ChangelogMode getChangelogMode() {
            return ChangelogMode.insertOnly();
        }

        @Override
        public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
            RowType row = (RowType) type.getLogicalType();
            return SourceProvider.of(
                    new DataGeneratorSource<>(new Rows(folder, table, row), rows, InternalTypeInfo.of(row)));
        }

        @Override
        public DynamicTableSource copy() {
            return new Source(folder, table, rows, type);
        }

        @Override
        public String asSummaryString() {
            return table;
        }
    }

    // ---- sink ----

    private static final class Checksum implements Sink<RowData>, DynamicTableSink {
        static volatile long allRows;
        static volatile long allSums;

        private final int[] summed;
        private final int key;

        Checksum(List<String> columns, String summed, String key) {
            this.summed =
                    Stream.of(summed.split(",")).filter(name -> !name.isEmpty()).mapToInt(columns::indexOf).toArray();
            this.key = columns.indexOf(key);
        }

        /** All but -U, as Flink's sink "blackhole". */
        @Override
        public ChangelogMode getChangelogMode(ChangelogMode requested) {
            ChangelogMode.Builder taken = ChangelogMode.newBuilder();
            requested.getContainedKinds().stream()
                    .filter(kind -> kind != RowKind.UPDATE_BEFORE)
                    .forEach(taken::addContainedKind);
            return taken.build();
        }

        @Override
        public SinkRuntimeProvider getSinkRuntimeProvider(DynamicTableSink.Context context) {
            return SinkV2Provider.of(this);
        }

        @Override
        public DynamicTableSink copy() {
            return this;
        }

        @Override
        public String asSummaryString() {
            return "checksum";
        }

        @Override
        public SinkWriter<RowData> createWriter(WriterInitContext context) {
            Map<Long, Long> last = new HashMap<>();
            return new SinkWriter<>() {
                private long rows;
                private long sums;

                @Override
                public void write(RowData row, SinkWriter.Context unused) {
                    long sum = 0;
                    for (int column : summed) {
                        sum += row.isNullAt(column) ? 0 : row.getLong(column);
                    }
                    if (key < 0) {
                        rows++;
                        sums += sum;
                    } else if (row.getRowKind() == RowKind.DELETE) {
                        last.remove(row.getLong(key));
                    } else {
                        last.put(row.getLong(key), sum);
                    }
                }

                @Override
                public void flush(boolean endOfInput) {}

                @Override
                public void close() {
                    allRows = rows + last.size();
                    allSums = sums + last.values().stream().mapToLong(Long::longValue).sum();
                }
            };
        }
    }

    // ---- tables ----

    /** Makes the sources and the sink of all tables, since its catalog is asked before their connectors. */
    private static final class Tables implements DynamicTableSourceFactory, DynamicTableSinkFactory {
        private final String folder;
        private final Map<String, Long> rows;
        private final String summed;
        private final String key;

        Tables(String folder, Map<String, Long> rows, String summed, String key) {
            this.folder = folder;
            this.rows = rows;
            this.summed = summed;
            this.key = key;
        }

        private static DataType columnsOf(Context context) {
            return context.getCatalogTable().getResolvedSchema().toPhysicalRowDataType();
        }

        @Override
        public DynamicTableSource createDynamicTableSource(Context context) {
            String table = context.getObjectIdentifier().getObjectName();
            return new Source(folder, table, rows.get(table), columnsOf(context));
        }

        @Override
        public DynamicTableSink createDynamicTableSink(Context context) {
            return new Checksum(DataType.getFieldNames(columnsOf(context)), summed, key);
        }

        @Override
        public String factoryIdentifier() {
            return "columns";
        }

        @Override
        public Set<ConfigOption<?>> requiredOptions() {
            return new HashSet<>();
        }

        @Override
        public Set<ConfigOption<?>> optionalOptions() {
            return new HashSet<>();
        }
    }

    public static void main(String[] args) throws Exception {
        Configuration settings = new Configuration();
        settings.setString("table.local-time-zone", "UTC");
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1, settings);
        env.getConfig().enableObjectReuse();
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        tables.getConfig().addConfiguration(settings);
        Map<String, Long> rows =
                Map.of(
                        "persons", Long.parseLong(args[2]),
                        "auctions", Long.parseLong(args[3]),
                        "bids", Long.parseLong(args[4]));
        Factory factory = new Tables(args[1], rows, args[5], args[6]);
        tables.registerCatalog(
                "nexmark",
                new GenericInMemoryCatalog("nexmark", "log") {
                    @Override
                    public Optional<Factory> getFactory() {
                        return Optional.of(factory);
                    }
                });
        tables.useCatalog("nexmark");
        String[] statements = Files.readString(Path.of(args[0])).split("\n;\n");
        int last = statements.length - 1;
        for (int i = 0; i < last; i++) {
            tables.executeSql(statements[i]);
        }
        String plan = tables.compilePlanSql(statements[last]).asJsonString();
        JobExecutionResult result =
                tables.executeSql(statements[last]).getJobClient().orElseThrow().getJobExecutionResult().get();
        System.out.printf(
                "{\"job_seconds\": %.3f, \"rows\": %d, \"sums\": %d, \"plan\": %s}%n",
                result.getNetRuntime() / 1e3,
                Checksum.allRows,
                Checksum.allSums,
                plan.replaceAll("\\s*\n\\s*", ""));
    }
}
