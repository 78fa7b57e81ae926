import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;

/**
 * Counts events of keys in windows of an hour from a history that it makes, and stops with a canonical savepoint.
 *
 * <p>Arguments: number of keys, each of which has one event, and a new directory. The heap state backend and one
 * subtask. Prints the directory of the savepoint.
 */
public final class SavepointOfWindows {
    private static final CountDownLatch READ = new CountDownLatch(1);

    public static void main(String[] args) throws Exception {
        String folder = Path.of(args[1]).toUri().toString();
        MiniClusterConfiguration settings = new MiniClusterConfiguration.Builder()
                .setNumTaskManagers(1).setNumSlotsPerTaskManager(1).build();
        try (MiniCluster cluster = new MiniCluster(settings)) {
            cluster.start();
            Configuration configuration = new Configuration();
            configuration.setString("execution.checkpointing.storage", "filesystem");
            configuration.setString("execution.checkpointing.dir", folder);
            StreamExecutionEnvironment environment =
                    StreamExecutionEnvironment.getExecutionEnvironment(configuration);
            environment.setParallelism(1);
            environment.setMaxParallelism(128);
            environment.getConfig().enableObjectReuse();
            environment.addSource(new History(Long.parseLong(args[0]))).uid("history")
                    .assignTimestampsAndWatermarks(WatermarkStrategy.<Long>forMonotonousTimestamps()
                            .withTimestampAssigner((key, timestamp) -> key / 7919 % 1000))
                    .keyBy(key -> key, Types.LONG)
                    .window(TumblingEventTimeWindows.of(Duration.ofHours(1)))
                    .aggregate(new Count(), Types.LONG, Types.LONG).uid("counts")
                    .sinkTo(new DiscardingSink<>()).uid("sink");
            JobGraph graph = environment.getStreamGraph().getJobGraph();
            cluster.submitJob(graph).get();
            READ.await();
            System.out.println(stopped(cluster, graph.getJobID(), folder));
            cluster.requestJobResult(graph.getJobID()).get();
        }
        System.exit(0);
    }

    /** Stops the job once all its tasks run: a short history is read before. */
    private static String stopped(MiniCluster cluster, JobID job, String folder) throws Exception {
        while (true) {
            try {
                return cluster.stopWithSavepoint(job, folder, false, SavepointFormatType.CANONICAL).get();
            } catch (Exception failure) {
                if (!String.valueOf(failure).contains("Not all required tasks")) {
                    throw failure;
                }
                TimeUnit.MILLISECONDS.sleep(5);
            }
        }
    }

    /** Emits a key after the other, and waits for the savepoint. */
    public static final class History implements SourceFunction<Long> {
        private final long keys;
        private volatile boolean runs = true;

        History(long keys) {
            this.keys = keys;
        }

        @Override
        public void run(SourceContext<Long> context) throws Exception {
            for (long key = 0; key < keys && runs; key++) {
                synchronized (context.getCheckpointLock()) {
                    context.collect(key * 7919);
                }
            }
            READ.countDown();
            while (runs) {
                TimeUnit.MILLISECONDS.sleep(5);
            }
        }

        @Override
        public void cancel() {
            runs = false;
        }
    }

    /** Counts events. */
    public static final class Count implements AggregateFunction<Long, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Long key, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long one, Long other) {
            return one + other;
        }
    }
}
