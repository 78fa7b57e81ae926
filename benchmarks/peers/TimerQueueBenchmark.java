import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import org.apache.flink.runtime.state.KeyExtractorFunction;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.PriorityComparator;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSet;
import org.apache.flink.streaming.api.operators.TimerHeapInternalTimer;

/**
 * Nanoseconds per timer of Flink's de-duplicating timer heap, as one JSON line per size.
 *
 * <p>Arguments: rounds, then the sizes. Every round takes a new queue through four verbs over all timers: add distinct
 * ones in random order, add equal ones, remove them in random order, and (added again) poll until empty. A timer object
 * is made for each call, as InternalTimerServiceImpl does. The fastest round counts; the first ones warm the JVM.
 */
public final class TimerQueueBenchmark {
    private static final int KEY_GROUPS = 128;
    private static final String[] VERBS = {"add", "duplicate_add", "remove", "poll"};

    private static long guard;

    public static void main(String[] args) {
        int rounds = Integer.parseInt(args[0]);
        round(200_000, 1);
        round(200_000, 2);
        for (int i = 1; i < args.length; i++) {
            int n = Integer.parseInt(args[i]);
            double[] best = new double[VERBS.length];
            Arrays.fill(best, Double.MAX_VALUE);
            for (int r = 0; r < rounds; r++) {
                double[] nanos = round(n, 3 + r);
                for (int v = 0; v < best.length; v++) {
                    best[v] = Math.min(best[v], nanos[v]);
                }
            }
            StringBuilder line = new StringBuilder("{\"timers\": " + n);
            for (int v = 0; v < best.length; v++) {
                line.append(String.format(Locale.ROOT, ", \"%s\": %.1f", VERBS[v], best[v]));
            }
            System.out.println(line.append("}"));
        }
        System.err.println(guard);
    }

    private static double[] round(int n, long seed) {
        Random random = new Random(seed);
        long[] timestamps = new long[n];
        Long[] keys = new Long[n];
        for (int i = 0; i < n; i++) {
            timestamps[i] = 1_600_000_000_000L + 7L * i;
            keys[i] = (long) random.nextInt(n);
        }
        shuffle(timestamps, random);
        int[] order = new int[n];
        Arrays.setAll(order, i -> i);
        for (int i = n - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            int swapped = order[i];
            order[i] = order[j];
            order[j] = swapped;
        }
        HeapPriorityQueueSet<TimerHeapInternalTimer<Long, Long>> queue =
                new HeapPriorityQueueSet<>(
                        PriorityComparator.forPriorityComparableObjects(),
                        KeyExtractorFunction.forKeyedObjects(),
                        128,
                        new KeyGroupRange(0, KEY_GROUPS - 1),
                        KEY_GROUPS);
        double[] nanos = new double[VERBS.length];
        long start = System.nanoTime();
        for (int i = 0; i < n; i++) {
            guard += queue.add(timer(timestamps[i], keys[i])) ? 1 : 0;
        }
        nanos[0] = (double) (System.nanoTime() - start) / n;
        start = System.nanoTime();
        for (int i : order) {
            guard += queue.add(timer(timestamps[i], keys[i])) ? 1 : 0;
        }
        nanos[1] = (double) (System.nanoTime() - start) / n;
        start = System.nanoTime();
        for (int i : order) {
            guard += queue.remove(timer(timestamps[i], keys[i])) ? 1 : 0;
        }
        nanos[2] = (double) (System.nanoTime() - start) / n;
        if (!queue.isEmpty()) {
            throw new IllegalStateException("timers are left");
        }
        for (int i : order) {
            queue.add(timer(timestamps[i], keys[i]));
        }
        start = System.nanoTime();
        for (int i = 0; i < n; i++) {
            guard += queue.poll().getTimestamp();
        }
        nanos[3] = (double) (System.nanoTime() - start) / n;
        return nanos;
    }

    private static TimerHeapInternalTimer<Long, Long> timer(long timestamp, Long key) {
        return new TimerHeapInternalTimer<>(timestamp, key, timestamp - timestamp % 10_000);
    }

    private static void shuffle(long[] values, Random random) {
        for (int i = values.length - 1; i > 0; i--) {
            int j = random.nextInt(i + 1);
            long swapped = values[i];
            values[i] = values[j];
            values[j] = swapped;
        }
    }
}
