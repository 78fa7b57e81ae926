import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.util.Collector;

/**
 * Seconds in which Flink writes a canonical savepoint of keys with a value and a timer each, and restores it, as JSON.
 *
 * <p>Arguments: number of keys, a new directory, rounds. The heap state backend and one subtask; the fastest round
 * counts, by wall clock and by the CPU time of the process. A restore lasts until the first element.
 */
public final class SavepointOfKeys {
    private static volatile CountDownLatch ready;
    private static Path folder;

    public static void main(String[] args) throws Exception {
        long keys = Long.parseLong(args[0]);
        folder = Path.of(args[1]);
        int rounds = Integer.parseInt(args[2]);
        MiniClusterConfiguration settings = new MiniClusterConfiguration.Builder()
                .setNumTaskManagers(1).setNumSlotsPerTaskManager(1).build();
        try (MiniCluster cluster = new MiniCluster(settings)) {
            cluster.start();
            JobID job = submit(cluster, keys, null);
            String made = null;
            double[] write = {1e9, 1e9};
            for (int i = 0; i < rounds; i++) {
                delete();
                double[] begin = now();
                made = cluster.triggerSavepoint(job, folder.toUri().toString(), false, SavepointFormatType.CANONICAL).get();
                keepLeast(write, begin);
            }
            cluster.cancelJob(job).get();
            double[] restore = {1e9, 1e9};
            for (int i = 0; i < rounds; i++) {
                double[] begin = now();
                JobID restored = submit(cluster, 0, made);
                keepLeast(restore, begin);
                cluster.cancelJob(restored).get();
            }
            System.out.printf(Locale.ROOT,
                    "{\"write_seconds\": %.3f, \"write_cpu\": %.3f, \"restore_seconds\": %.3f, \"restore_cpu\": %.3f}%n",
                    write[0], write[1], restore[0], restore[1]);
        }
        System.exit(0);
    }

    private static JobID submit(MiniCluster cluster, long keys, String savepoint) throws Exception {
        ready = new CountDownLatch(1);
        Configuration configuration = new Configuration();
        configuration.setString("execution.checkpointing.storage", "filesystem");
        configuration.setString("execution.checkpointing.dir", folder.toUri().toString());
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(configuration);
        environment.setParallelism(1);
        environment.setMaxParallelism(128);
        environment.addSource(new Keys(keys)).uid("keys").keyBy(key -> key, Types.LONG).process(new Counted()).uid("op")
                .sinkTo(new DiscardingSink<>()).uid("sink");
        JobGraph graph = environment.getStreamGraph().getJobGraph();
        if (savepoint != null) {
            graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(savepoint));
        }
        cluster.submitJob(graph).get();
        ready.await();
        return graph.getJobID();
    }

    private static double[] now() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new double[] {System.nanoTime() / 1e9, system.getProcessCpuTime() / 1e9};
    }

    private static void keepLeast(double[] least, double[] begin) {
        double[] end = now();
        for (int i = 0; i < 2; i++) {
            least[i] = Math.min(least[i], end[i] - begin[i]);
        }
    }

    private static void delete() throws Exception {
        if (Files.exists(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(path);
                }
            }
        }
    }

    /** Emits keys, and then a negative one; goes on without further ones. */
    public static final class Keys implements SourceFunction<Long> {
        private final long keys;
        private volatile boolean runs = true;

        Keys(long keys) {
            this.keys = keys;
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            for (long key = 0; key < keys && runs; key++) {
                synchronized (context.getCheckpointLock()) {
                    context.collect(key);
                }
            }
            context.collect(-1L);
            while (runs) {
                TimeUnit.MILLISECONDS.sleep(20);
            }
        }

        @Override
        public void cancel() {
            runs = false;
        }
    }

    /** Keeps a value and a timer of each key. */
    public static final class Counted extends KeyedProcessFunction<Long, Long, Long> {
        private ValueState<Long> value;

        @Override
        public void open(OpenContext context) {
            value = getRuntimeContext().getState(new ValueStateDescriptor<>("value", Types.LONG));
        }

        @Override
        public void processElement(Long key, Context context, Collector<Long> out) throws Exception {
            if (key < 0) {
                ready.countDown();
                return;
            }
            value.update(key);
            context.timerService().registerEventTimeTimer(key + 1_000_000_000_000L);
        }
    }
}
