import java.io.Serializable;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple5;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Flink's DataStream job over the bids of benchmarks/nexmark.py: count, sum and maximum of price per bidder and
 * event-time window, watermark 4 s behind the maximum.
 *
 * <p>The bids are generated inside the source with the same formula, bit for bit, so that no reading is measured.
 * Only the three columns that the query needs travel. Results are summed in the sink and dropped.
 *
 * <p>Usage: WindowedBids EVENTS PARALLELISM tumbling|sliding|session SEED EVENTS_PER_SECOND DISORDER_SECONDS
 * ACTIVE_PEOPLE BASE_MS; prints one line of JSON. EVENTS must be a multiple of PARALLELISM.
 */
public final class WindowedBids {

    private static final int EVENTS_PER_ROUND = 50;
    private static final int FIRST_BID_OF_ROUND = 4;
    private static final int PRICES = 1 << 16;
    private static final long FIRST_ID = 1_000;
    private static final long HOT_BIDDERS_OF_1024 = 416;
    private static final long HOT_STRIDE = 100;
    private static final long ID_LEAD = 10;
    private static final long OFFSET_MASK = (1 << 20) - 1;

    /** Makes (bidder, price, date_time) of the bid at each position of the log. */
    static final class Bids implements Serializable {
        private final long seed;
        private final long eventsPerSecond;
        private final long activePeople;
        private final long baseMs;
        private final long group;
        private final int[] bidOffsets;
        private final long[] priceOf = new long[PRICES];

        Bids(long seed, long eventsPerSecond, long disorderSeconds, long activePeople, long baseMs) {
            this.seed = seed;
            this.eventsPerSecond = eventsPerSecond;
            this.activePeople = activePeople;
            this.baseMs = baseMs;
            this.group = eventsPerSecond * disorderSeconds;
            long[] shuffled = new long[(int) group];
            for (int i = 0; i < shuffled.length; i++) {
                // The sign is flipped because the order is that of unsigned numbers.
                shuffled[i] = (splitmix64(0, i) & ~OFFSET_MASK | i) ^ Long.MIN_VALUE;
            }
            Arrays.sort(shuffled);
            this.bidOffsets =
                    Arrays.stream(shuffled)
                            .mapToInt(h -> (int) (h & OFFSET_MASK))
                            .filter(offset -> offset % EVENTS_PER_ROUND >= FIRST_BID_OF_ROUND)
                            .toArray();
            for (int i = 0; i < PRICES; i++) {
                priceOf[i] = (long) Math.rint(100 * Math.pow(10, 6.0 * i / PRICES));
            }
        }

        private long splitmix64(long stream, long number) {
            long z = (number * 8 + stream + 1) * 0x9E3779B97F4A7C15L + seed;
            z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
            z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
            return z ^ (z >>> 31);
        }

        void fill(long position, Tuple3<Long, Long, Long> bid) {
            long number =
                    position / bidOffsets.length * group + bidOffsets[(int) (position % bidOffsets.length)];
            long people = activePeople + number / EVENTS_PER_ROUND;
            long random = splitmix64(2, number);
            boolean hot = (random & 1023) < HOT_BIDDERS_OF_1024;
            bid.f0 =
                    FIRST_ID
                            + (hot
                                    ? people / HOT_STRIDE * HOT_STRIDE + 1
                                    : people + 1 - activePeople
                                            + ((random >>> 33) * (activePeople + ID_LEAD) >>> 31));
            bid.f1 = priceOf[(int) (splitmix64(3, number) >>> 48)];
            bid.f2 = baseMs + number * 1_000 / eventsPerSecond;
        }
    }

    /**
     * Flink gives each subtask a contiguous range of indexes; position in the log is interleaved over them, so that
     * the subtasks move through event time together.
     */
    static final class BidGenerator implements GeneratorFunction<Long, Tuple3<Long, Long, Long>> {
        private final Bids bids;
        private final long parallelism;
        private final long eventsPerSubtask;
        private final Tuple3<Long, Long, Long> reused = new Tuple3<>();

        BidGenerator(Bids bids, long events, int parallelism) {
            this.bids = bids;
            this.parallelism = parallelism;
            this.eventsPerSubtask = events / parallelism;
        }

        @Override
        public Tuple3<Long, Long, Long> map(Long index) {
            bids.fill(index % eventsPerSubtask * parallelism + index / eventsPerSubtask, reused);
            return reused;
        }
    }

    /** (count, sum, maximum) of the price. */
    static final class Prices implements AggregateFunction<Tuple3<Long, Long, Long>, long[], long[]> {
        @Override
        public long[] createAccumulator() {
            return new long[] {0, 0, Long.MIN_VALUE};
        }

        @Override
        public long[] add(Tuple3<Long, Long, Long> bid, long[] sums) {
            long price = bid.f1;
            sums[0]++;
            sums[1] += price;
            sums[2] = Math.max(sums[2], price);
            return sums;
        }

        @Override
        public long[] getResult(long[] sums) {
            return sums;
        }

        @Override
        public long[] merge(long[] a, long[] b) {
            return new long[] {a[0] + b[0], a[1] + b[1], Math.max(a[2], b[2])};
        }
    }

    static final class ResultRow
            implements WindowFunction<long[], Tuple5<Long, Long, Long, Long, Long>, Long, TimeWindow> {
        private final Tuple5<Long, Long, Long, Long, Long> row = new Tuple5<>();

        @Override
        public void apply(
                Long bidder,
                TimeWindow window,
                Iterable<long[]> prices,
                Collector<Tuple5<Long, Long, Long, Long, Long>> out) {
            long[] sums = prices.iterator().next();
            row.setFields(bidder, window.getStart(), sums[0], sums[1], sums[2]);
            out.collect(row);
        }
    }

    /** Counts and sums the results; the totals are static because the job runs inside this JVM. */
    static final class Checksum implements Sink<Tuple5<Long, Long, Long, Long, Long>> {
        static final AtomicLong ROWS = new AtomicLong();
        static final AtomicLong COUNTS = new AtomicLong();
        static final AtomicLong TOTALS = new AtomicLong();
        static final AtomicLong TOPS = new AtomicLong();

        @Override
        public SinkWriter<Tuple5<Long, Long, Long, Long, Long>> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                private long rows;
                private long counts;
                private long totals;
                private long tops;

                @Override
                public void write(Tuple5<Long, Long, Long, Long, Long> row, Context unused) {
                    rows++;
                    counts += row.f2;
                    totals += row.f3;
                    tops += row.f4;
                }

                @Override
                public void flush(boolean endOfInput) {}

                @Override
                public void close() {
                    ROWS.addAndGet(rows);
                    COUNTS.addAndGet(counts);
                    TOTALS.addAndGet(totals);
                    TOPS.addAndGet(tops);
                }
            };
        }
    }

    private static WindowAssigner<Object, TimeWindow> windows(String kind) {
        switch (kind) {
            case "tumbling":
                return TumblingEventTimeWindows.of(Duration.ofSeconds(10));
            case "sliding":
                return SlidingEventTimeWindows.of(Duration.ofSeconds(10), Duration.ofSeconds(2));
            case "session":
                return EventTimeSessionWindows.withGap(Duration.ofSeconds(10));
            default:
                throw new IllegalArgumentException("no windows called " + kind);
        }
    }

    public static void main(String[] args) throws Exception {
        long events = Long.parseLong(args[0]);
        int parallelism = Integer.parseInt(args[1]);
        String kind = args[2];
        long seed = Long.parseLong(args[3]);
        long eventsPerSecond = Long.parseLong(args[4]);
        long disorderSeconds = Long.parseLong(args[5]);
        long activePeople = Long.parseLong(args[6]);
        long baseMs = Long.parseLong(args[7]);
        if (events % parallelism != 0) {
            throw new IllegalArgumentException(events + " events are not a multiple of " + parallelism);
        }
        Bids bids = new Bids(seed, eventsPerSecond, disorderSeconds, activePeople, baseMs);

        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, new Configuration());
        env.setRuntimeMode(RuntimeExecutionMode.STREAMING);
        env.getConfig().enableObjectReuse();
        TypeInformation<Tuple3<Long, Long, Long>> type = TypeInformation.of(new TypeHint<>() {});
        env.fromSource(
                        new DataGeneratorSource<>(new BidGenerator(bids, events, parallelism), events, type),
                        WatermarkStrategy.<Tuple3<Long, Long, Long>>forBoundedOutOfOrderness(
                                        Duration.ofSeconds(disorderSeconds))
                                .withTimestampAssigner((bid, unused) -> bid.f2),
                        "bids")
                .keyBy(bid -> bid.f0, TypeInformation.of(Long.class))
                .window(windows(kind))
                .aggregate(
                        new Prices(),
                        new ResultRow(),
                        TypeInformation.of(long[].class),
                        TypeInformation.of(new TypeHint<Tuple5<Long, Long, Long, Long, Long>>() {}))
                .sinkTo(new Checksum());

        long start = System.nanoTime();
        JobExecutionResult result = env.execute("windowed bids");
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf(
                "{\"seconds\": %.3f, \"job_seconds\": %.3f, \"rows\": %d, \"n\": %d, \"total\": %d, \"top\": %d}%n",
                seconds,
                result.getNetRuntime() / 1e3,
                Checksum.ROWS.get(),
                Checksum.COUNTS.get(),
                Checksum.TOTALS.get(),
                Checksum.TOPS.get());
    }
}
