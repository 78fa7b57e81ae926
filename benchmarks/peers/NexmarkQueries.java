import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.co.KeyedCoProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.SlidingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/**
 * Queries of Nexmark as jobs of Flink's DataStream API, over columns that benchmarks/nexmark.py writes.
 *
 * <p>Sources read their events from memory-mapped files, one at a time, with those columns that the query needs. The sink
 * adds up the numbers of each result and drops it.
 *
 * <p>Usage: NexmarkQueries FOLDER QUERY PERSONS AUCTIONS BIDS; prints one line of JSON.
 */
public final class NexmarkQueries {

    // ---- events ----

    public static final class Person implements Serializable {
        public long id;
        public String name;
        public String city;
        public String state;
        public long dateTime;

        public Person() {}
    }

    public static final class Auction implements Serializable {
        public long id;
        public String itemName;
        public String description;
        public long initialBid;
        public long reserve;
        public long dateTime;
        public long expires;
        public long seller;
        public long category;
        public String extra;

        public Auction() {}
    }

    public static final class Bid implements Serializable {
        public long auction;
        public long bidder;
        public long price;
        public String channel;
        public String url;
        public long dateTime;
        public String extra;

        public Bid() {}
    }

    /** A result: what is checked is the sum of its numbers. */
    public static final class Result implements Serializable {
        public long sum;
        public Object[] fields;

        public Result() {}

        static Result of(long sum, Object... fields) {
            Result result = new Result();
            result.sum = sum;
            result.fields = fields;
            return result;
        }
    }

    /** The columns of a kind of events, as files. */
    private abstract static class Columns<T> implements GeneratorFunction<Long, T> {
        private final String folder;
        private final boolean texts;

        Columns(String folder, boolean texts) {
            this.folder = folder;
            this.texts = texts;
        }

        MappedByteBuffer mapped(String name) {
            try (FileChannel channel = FileChannel.open(Path.of(folder, name))) {
                MappedByteBuffer buffer = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
                buffer.order(ByteOrder.LITTLE_ENDIAN);
                return buffer;
            } catch (IOException failure) {
                throw new UncheckedIOException(failure);
            }
        }

        LongBuffer numbers(String name) {
            return mapped(name).asLongBuffer();
        }

        Texts texts(String name) {
            return texts ? new Texts(numbers(name + ".offsets"), mapped(name)) : null;
        }
    }

    private static final class Texts {
        private final LongBuffer offsets;
        private final MappedByteBuffer bytes;

        Texts(LongBuffer offsets, MappedByteBuffer bytes) {
            this.offsets = offsets;
            this.bytes = bytes;
        }

        String get(int row) {
            int start = (int) offsets.get(row);
            byte[] text = new byte[(int) offsets.get(row + 1) - start];
            bytes.get(start, text);
            return new String(text, StandardCharsets.ISO_8859_1);
        }
    }

    private static final class Persons extends Columns<Person> {
        private transient LongBuffer id;
        private transient LongBuffer dateTime;
        private transient Texts name;
        private transient Texts city;
        private transient Texts state;

        Persons(String folder) {
            super(folder, true);
        }

        @Override
        public Person map(Long index) {
            if (id == null) {
                id = numbers("persons.id");
                dateTime = numbers("persons.date_time");
                name = texts("persons.name");
                city = texts("persons.city");
                state = texts("persons.state");
            }
            int row = index.intValue();
            Person person = new Person();
            person.id = id.get(row);
            person.dateTime = dateTime.get(row);
            person.name = name.get(row);
            person.city = city.get(row);
            person.state = state.get(row);
            return person;
        }
    }

    private static final class Auctions extends Columns<Auction> {
        private transient LongBuffer[] numbers;
        private transient Texts itemName;
        private transient Texts description;
        private transient Texts extra;

        Auctions(String folder, boolean texts) {
            super(folder, texts);
        }

        @Override
        public Auction map(Long index) {
            if (numbers == null) {
                String[] names = {
                    "id", "initial_bid", "reserve", "date_time", "expires", "seller", "category"
                };
                numbers = new LongBuffer[names.length];
                for (int i = 0; i < names.length; i++) {
                    numbers[i] = numbers("auctions." + names[i]);
                }
                itemName = texts("auctions.item_name");
                description = texts("auctions.description");
                extra = texts("auctions.extra");
            }
            int row = index.intValue();
            Auction auction = new Auction();
            auction.id = numbers[0].get(row);
            auction.initialBid = numbers[1].get(row);
            auction.reserve = numbers[2].get(row);
            auction.dateTime = numbers[3].get(row);
            auction.expires = numbers[4].get(row);
            auction.seller = numbers[5].get(row);
            auction.category = numbers[6].get(row);
            if (extra != null) {
                auction.itemName = itemName.get(row);
                auction.description = description.get(row);
                auction.extra = extra.get(row);
            }
            return auction;
        }
    }

    private static final class Bids extends Columns<Bid> {
        private final boolean channels;
        private transient LongBuffer auction;
        private transient LongBuffer bidder;
        private transient LongBuffer price;
        private transient LongBuffer dateTime;
        private transient Texts channel;
        private transient Texts url;
        private transient Texts extra;

        Bids(String folder, boolean channels, boolean texts) {
            super(folder, texts || channels);
            this.channels = channels;
        }

        @Override
        public Bid map(Long index) {
            if (auction == null) {
                auction = numbers("bids.auction");
                bidder = numbers("bids.bidder");
                price = numbers("bids.price");
                dateTime = numbers("bids.date_time");
                channel = channels ? texts("bids.channel") : null;
                url = channels ? texts("bids.url") : null;
                extra = texts("bids.extra");
            }
            int row = index.intValue();
            Bid bid = new Bid();
            bid.auction = auction.get(row);
            bid.bidder = bidder.get(row);
            bid.price = price.get(row);
            bid.dateTime = dateTime.get(row);
            if (channel != null) {
                bid.channel = channel.get(row);
                bid.url = url.get(row);
            }
            if (extra != null) {
                bid.extra = extra.get(row);
            }
            return bid;
        }
    }

    // ---- functions ----

    /** Gives the highest bid for an auction while it was open, the earliest of several, when it expires. */
    static final class WinningBids extends KeyedCoProcessFunction<Long, Auction, Bid, Tuple2<Auction, Bid>> {
        private transient ValueState<Auction> auction;
        private transient ValueState<Boolean> hasExpired;
        private transient ValueState<Bid> best;
        private transient ListState<Bid> waiting;

        @Override
        public void open(OpenContext context) {
            auction = getRuntimeContext().getState(new ValueStateDescriptor<>("auction", Auction.class));
            hasExpired = getRuntimeContext().getState(new ValueStateDescriptor<>("expired", Boolean.class));
            best = getRuntimeContext().getState(new ValueStateDescriptor<>("best", Bid.class));
            waiting = getRuntimeContext().getListState(new ListStateDescriptor<>("waiting", Bid.class));
        }

        @Override
        public void processElement1(Auction value, Context context, Collector<Tuple2<Auction, Bid>> out)
                throws Exception {
            auction.update(value);
            for (Bid bid : waiting.get()) {
                take(value, bid);
            }
            waiting.clear();
            context.timerService().registerEventTimeTimer(value.expires);
        }

        @Override
        public void processElement2(Bid value, Context context, Collector<Tuple2<Auction, Bid>> out)
                throws Exception {
            Auction known = auction.value();
            if (known != null) {
                take(known, value);
            } else if (hasExpired.value() == null) {
                waiting.add(value);
            }
        }

        private void take(Auction known, Bid bid) throws Exception {
            if (bid.dateTime < known.dateTime || bid.dateTime > known.expires) {
                return;
            }
            Bid before = best.value();
            if (before == null
                    || bid.price > before.price
                    || bid.price == before.price && bid.dateTime < before.dateTime) {
                best.update(bid);
            }
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Tuple2<Auction, Bid>> out)
                throws Exception {
            if (best.value() != null) {
                out.collect(Tuple2.of(auction.value(), best.value()));
            }
            auction.clear();
            best.clear();
            hasExpired.update(true);
        }
    }

    /** Joins persons of three states with the auctions of category 10 that they open. */
    static final class SellersOfAuctions extends KeyedCoProcessFunction<Long, Person, Auction, Result> {
        private transient ValueState<Person> person;
        private transient ListState<Long> waiting;

        @Override
        public void open(OpenContext context) {
            person = getRuntimeContext().getState(new ValueStateDescriptor<>("person", Person.class));
            waiting = getRuntimeContext().getListState(new ListStateDescriptor<>("waiting", Long.class));
        }

        @Override
        public void processElement1(Person value, Context context, Collector<Result> out) throws Exception {
            person.update(value);
            for (Long auction : waiting.get()) {
                join(value, auction, out);
            }
            waiting.clear();
        }

        @Override
        public void processElement2(Auction value, Context context, Collector<Result> out) throws Exception {
            Person known = person.value();
            if (known == null) {
                waiting.add(value.id);
            } else {
                join(known, value.id, out);
            }
        }

        private static void join(Person seller, long auction, Collector<Result> out) {
            if (seller.state.equals("OR") || seller.state.equals("ID") || seller.state.equals("CA")) {
                out.collect(Result.of(auction, seller.name, seller.city, seller.state));
            }
        }
    }

    /** Joins the auctions of category 10 with the bids for them. */
    static final class BidsOfAuctions extends KeyedCoProcessFunction<Long, Auction, Bid, Result> {
        private transient ValueState<Auction> auction;
        private transient ListState<Bid> waiting;

        @Override
        public void open(OpenContext context) {
            auction = getRuntimeContext().getState(new ValueStateDescriptor<>("auction", Auction.class));
            waiting = getRuntimeContext().getListState(new ListStateDescriptor<>("waiting", Bid.class));
        }

        @Override
        public void processElement1(Auction value, Context context, Collector<Result> out) throws Exception {
            auction.update(value);
            for (Bid bid : waiting.get()) {
                join(value, bid, out);
            }
            waiting.clear();
        }

        @Override
        public void processElement2(Bid value, Context context, Collector<Result> out) throws Exception {
            Auction known = auction.value();
            if (known == null) {
                waiting.add(value);
            } else {
                join(known, value, out);
            }
        }

        private static void join(Auction auction, Bid bid, Collector<Result> out) {
            if (auction.category == 10) {
                out.collect(Result.of(bid.auction + bid.bidder + bid.price, auction, bid));
            }
        }
    }

    /** Means of the last prices of each key, anew with each price; of all of them where `most` is 0. */
    static final class RunningMeans extends KeyedProcessFunction<Long, Tuple2<Auction, Bid>, Result> {
        private final int most;
        private transient ValueState<long[]> last;
        private transient ValueState<Tuple2<Long, Long>> sums;

        RunningMeans(int most) {
            this.most = most;
        }

        @Override
        public void open(OpenContext context) {
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", long[].class));
            sums = getRuntimeContext()
                    .getState(new ValueStateDescriptor<>("sums", Types.TUPLE(Types.LONG, Types.LONG)));
        }

        @Override
        public void processElement(Tuple2<Auction, Bid> value, Context context, Collector<Result> out)
                throws Exception {
            Tuple2<Long, Long> before = sums.value();
            long sum = (before == null ? 0 : before.f0) + value.f1.price;
            long count = before == null ? 1 : before.f1 + 1;
            if (most > 0) {
                long[] prices = last.value() == null ? new long[most] : last.value();
                int at = (int) ((count - 1) % most);
                sum -= prices[at];
                prices[at] = value.f1.price;
                last.update(prices);
            }
            sums.update(Tuple2.of(sum, count));
            long means = most > 0 ? Math.min(count, most) : count;
            out.collect(Result.of(0, context.getCurrentKey(), (double) sum / means));
        }
    }

    static final class Count implements AggregateFunction<Bid, Long, Long> {
        @Override
        public Long createAccumulator() {
            return 0L;
        }

        @Override
        public Long add(Bid bid, Long count) {
            return count + 1;
        }

        @Override
        public Long getResult(Long count) {
            return count;
        }

        @Override
        public Long merge(Long a, Long b) {
            return a + b;
        }
    }

    /** All bids of the highest price. */
    static final class Highest implements AggregateFunction<Bid, List<Bid>, List<Bid>> {
        @Override
        public List<Bid> createAccumulator() {
            return new ArrayList<>();
        }

        @Override
        public List<Bid> add(Bid bid, List<Bid> best) {
            if (!best.isEmpty() && bid.price > best.get(0).price) {
                best.clear();
            }
            if (best.isEmpty() || bid.price == best.get(0).price) {
                best.add(bid);
            }
            return best;
        }

        @Override
        public List<Bid> getResult(List<Bid> best) {
            return best;
        }

        @Override
        public List<Bid> merge(List<Bid> a, List<Bid> b) {
            b.forEach(bid -> add(bid, a));
            return a;
        }
    }

    /** count, three ranks, least, greatest, sum. */
    static final class Prices implements AggregateFunction<Bid, long[], long[]> {
        @Override
        public long[] createAccumulator() {
            return new long[] {0, 0, 0, 0, Long.MAX_VALUE, Long.MIN_VALUE, 0};
        }

        @Override
        public long[] add(Bid bid, long[] sums) {
            sums[0]++;
            sums[rank(bid.price)]++;
            sums[4] = Math.min(sums[4], bid.price);
            sums[5] = Math.max(sums[5], bid.price);
            sums[6] += bid.price;
            return sums;
        }

        @Override
        public long[] getResult(long[] sums) {
            return sums;
        }

        @Override
        public long[] merge(long[] a, long[] b) {
            throw new UnsupportedOperationException("tumbling windows do not merge");
        }
    }

    private static int rank(long price) {
        return price < 10_000 ? 1 : price < 1_000_000 ? 2 : 3;
    }

    /** Counts of bids, and of different bidders and auctions, each of all and of three ranks. */
    static final class Statistics {
        final long[] bids = new long[4];
        final List<Set<Long>> bidders = new ArrayList<>();
        final List<Set<Long>> auctions = new ArrayList<>();

        Statistics() {
            for (int i = 0; i < 4; i++) {
                bidders.add(new HashSet<>());
                auctions.add(new HashSet<>());
            }
        }

        void add(Bid bid) {
            for (int kind : new int[] {0, rank(bid.price)}) {
                bids[kind]++;
                bidders.get(kind).add(bid.bidder);
                auctions.get(kind).add(bid.auction);
            }
        }

        Result result() {
            Object[] numbers = new Object[12];
            long sum = 0;
            for (int i = 0; i < 4; i++) {
                numbers[i] = bids[i];
                numbers[4 + i] = (long) bidders.get(i).size();
                numbers[8 + i] = (long) auctions.get(i).size();
                sum += bids[i] + bidders.get(i).size() + auctions.get(i).size();
            }
            return Result.of(sum, numbers);
        }
    }

    static final class StatisticsOfBids implements AggregateFunction<Bid, Statistics, Result> {
        @Override
        public Statistics createAccumulator() {
            return new Statistics();
        }

        @Override
        public Statistics add(Bid bid, Statistics statistics) {
            statistics.add(bid);
            return statistics;
        }

        @Override
        public Result getResult(Statistics statistics) {
            return statistics.result();
        }

        @Override
        public Statistics merge(Statistics a, Statistics b) {
            throw new UnsupportedOperationException("tumbling windows do not merge");
        }
    }

    /** Keeps a bid per key, and gives it at the end. */
    static final class LastBid extends KeyedProcessFunction<Tuple2<Long, Long>, Bid, Result> {
        private transient ValueState<Bid> last;

        @Override
        public void open(OpenContext context) {
            last = getRuntimeContext().getState(new ValueStateDescriptor<>("last", Bid.class));
        }

        @Override
        public void processElement(Bid bid, Context context, Collector<Result> out) throws Exception {
            Bid before = last.value();
            if (before == null) {
                context.timerService().registerEventTimeTimer(Long.MAX_VALUE);
            }
            if (before == null || bid.dateTime >= before.dateTime) {
                last.update(bid);
            }
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Result> out) throws Exception {
            Bid bid = last.value();
            out.collect(Result.of(bid.auction + bid.bidder + bid.price, bid));
        }
    }

    /** Keeps the ten highest bids of an auction, and gives them at the end. */
    static final class TopBids extends KeyedProcessFunction<Long, Bid, Result> {
        private transient ValueState<PriorityQueue<Tuple2<Long, Bid>>> top;
        private transient long arrived;

        @Override
        @SuppressWarnings({"unchecked", "rawtypes"})
        public void open(OpenContext context) {
            top = getRuntimeContext().getState(new ValueStateDescriptor<>("top", (Class) PriorityQueue.class));
        }

        private static int compare(Tuple2<Long, Bid> a, Tuple2<Long, Bid> b) {
            int byPrice = Long.compare(a.f1.price, b.f1.price);
            return byPrice != 0 ? byPrice : Long.compare(b.f0, a.f0);
        }

        @Override
        public void processElement(Bid bid, Context context, Collector<Result> out) throws Exception {
            PriorityQueue<Tuple2<Long, Bid>> bids = top.value();
            if (bids == null) {
                bids = new PriorityQueue<>(11, TopBids::compare);
                context.timerService().registerEventTimeTimer(Long.MAX_VALUE);
            }
            bids.add(Tuple2.of(arrived++, bid));
            if (bids.size() > 10) {
                bids.poll();
            }
            top.update(bids);
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Result> out) throws Exception {
            PriorityQueue<Tuple2<Long, Bid>> bids = top.value();
            while (!bids.isEmpty()) {
                int rank = bids.size();
                Bid bid = bids.poll().f1;
                out.collect(Result.of(bid.auction + bid.bidder + bid.price, bid, rank));
            }
        }
    }

    /** The auctions with most bids of each window. */
    static final class Hottest extends KeyedProcessFunction<Long, long[], Result> {
        private transient ValueState<long[]> most;
        private transient ListState<Long> auctions;

        @Override
        public void open(OpenContext context) {
            most = getRuntimeContext().getState(new ValueStateDescriptor<>("most", long[].class));
            auctions = getRuntimeContext().getListState(new ListStateDescriptor<>("auctions", Long.class));
        }

        @Override
        public void processElement(long[] counted, Context context, Collector<Result> out) throws Exception {
            long[] before = most.value();
            if (before == null) {
                context.timerService().registerEventTimeTimer(counted[2]);
            }
            if (before == null || counted[1] > before[0]) {
                most.update(new long[] {counted[1]});
                auctions.clear();
            }
            if (before == null || counted[1] >= before[0]) {
                auctions.add(counted[0]);
            }
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Result> out) throws Exception {
            out.collect(Result.of(most.value()[0], auctions.get()));
            most.clear();
            auctions.clear();
        }
    }

    /** Counts and adds up the results; the totals are static because the job runs inside this JVM. */
    static final class Checksum implements Sink<Result> {
        static final AtomicLong ROWS = new AtomicLong();
        static final AtomicLong SUMS = new AtomicLong();

        @Override
        public SinkWriter<Result> createWriter(WriterInitContext context) {
            return new SinkWriter<>() {
                private long rows;
                private long sums;

                @Override
                public void write(Result result, Context unused) {
                    rows++;
                    sums += result.sum;
                }

                @Override
                public void flush(boolean endOfInput) {}

                @Override
                public void close() {
                    ROWS.addAndGet(rows);
                    SUMS.addAndGet(sums);
                }
            };
        }
    }

    // ---- queries ----

    private final StreamExecutionEnvironment env;
    private final String folder;
    private final long nPersons;
    private final long nAuctions;
    private final long nBids;

    private NexmarkQueries(StreamExecutionEnvironment env, String folder, long persons, long auctions, long bids) {
        this.env = env;
        this.folder = folder;
        this.nPersons = persons;
        this.nAuctions = auctions;
        this.nBids = bids;
    }

    private static <T> WatermarkStrategy<T> outOfOrder() {
        return WatermarkStrategy.forBoundedOutOfOrderness(Duration.ofSeconds(4));
    }

    private DataStream<Person> persons() {
        return env.fromSource(
                new DataGeneratorSource<>(new Persons(folder), nPersons, TypeInformation.of(Person.class)),
                NexmarkQueries.<Person>outOfOrder().withTimestampAssigner((person, unused) -> person.dateTime),
                "persons");
    }

    private DataStream<Auction> auctions(boolean texts) {
        return env.fromSource(
                new DataGeneratorSource<>(
                        new Auctions(folder, texts), nAuctions, TypeInformation.of(Auction.class)),
                NexmarkQueries.<Auction>outOfOrder().withTimestampAssigner((auction, unused) -> auction.dateTime),
                "auctions");
    }

    private DataStream<Bid> bids(boolean channels, boolean texts) {
        return env.fromSource(
                new DataGeneratorSource<>(
                        new Bids(folder, channels, texts), nBids, TypeInformation.of(Bid.class)),
                NexmarkQueries.<Bid>outOfOrder().withTimestampAssigner((bid, unused) -> bid.dateTime),
                "bids");
    }

    private DataStream<Tuple2<Auction, Bid>> winningBids() {
        return auctions(true)
                .connect(bids(false, true))
                .keyBy(auction -> auction.id, bid -> bid.auction, Types.LONG)
                .process(new WinningBids())
                .returns(Types.TUPLE(Types.POJO(Auction.class), Types.POJO(Bid.class)));
    }

    private static ProcessWindowFunction<Long, Result, Long, TimeWindow> counted() {
        return new ProcessWindowFunction<>() {
            @Override
            public void process(Long key, Context context, Iterable<Long> counts, Collector<Result> out) {
                long count = counts.iterator().next();
                out.collect(Result.of(key + count, key, context.window().getStart(), count));
            }
        };
    }

    private DataStream<Result> query(String name) {
        Duration tenSeconds = Duration.ofSeconds(10);
        switch (name) {
            case "q0":
                return bids(false, true).map(bid -> Result.of(bid.auction + bid.bidder + bid.price, bid));
            case "q1":
                return bids(false, true)
                        .map(bid -> Result.of(bid.auction + bid.bidder, bid, 0.908 * bid.price));
            case "q2":
                return bids(false, false)
                        .filter(bid -> bid.auction % 123 == 0)
                        .map(bid -> Result.of(bid.auction + bid.price, bid));
            case "q3":
                return persons()
                        .connect(auctions(false).filter(auction -> auction.category == 10))
                        .keyBy(person -> person.id, auction -> auction.seller, Types.LONG)
                        .process(new SellersOfAuctions());
            case "q4":
                return winningBids().keyBy(won -> won.f0.category, Types.LONG).process(new RunningMeans(0));
            case "q5":
                return bids(false, false)
                        .keyBy(bid -> bid.auction, Types.LONG)
                        .window(SlidingEventTimeWindows.of(tenSeconds, Duration.ofSeconds(2)))
                        .aggregate(
                                new Count(),
                                new ProcessWindowFunction<Long, long[], Long, TimeWindow>() {
                                    @Override
                                    public void process(
                                            Long auction,
                                            Context context,
                                            Iterable<Long> counts,
                                            Collector<long[]> out) {
                                        long count = counts.iterator().next();
                                        out.collect(new long[] {auction, count, context.window().getEnd()});
                                    }
                                },
                                Types.LONG,
                                Types.LONG,
                                TypeInformation.of(long[].class))
                        .keyBy(counted -> counted[2], Types.LONG)
                        .process(new Hottest());
            case "q6":
                return winningBids().keyBy(won -> won.f0.seller, Types.LONG).process(new RunningMeans(10));
            case "q7":
                return bids(false, true)
                        .windowAll(TumblingEventTimeWindows.of(tenSeconds))
                        .aggregate(
                                new Highest(), Types.LIST(Types.POJO(Bid.class)), Types.LIST(Types.POJO(Bid.class)))
                        .flatMap(NexmarkQueries::each)
                        .returns(Result.class);
            case "q8":
                return persons()
                        .join(auctions(false))
                        .where(person -> person.id, Types.LONG)
                        .equalTo(auction -> auction.seller, Types.LONG)
                        .window(TumblingEventTimeWindows.of(tenSeconds))
                        .apply((person, auction) -> person, Types.POJO(Person.class))
                        .keyBy(person -> person.id, Types.LONG)
                        .process(new Once());
            case "q9":
                return winningBids()
                        .map(won -> Result.of(won.f1.auction + won.f1.bidder + won.f1.price, won));
            case "q11":
                return bids(false, false)
                        .keyBy(bid -> bid.bidder, Types.LONG)
                        .window(EventTimeSessionWindows.withGap(tenSeconds))
                        .aggregate(new Count(), counted());
            case "q14":
                return bids(false, true)
                        .filter(bid -> 0.908 * bid.price > 1_000_000 && 0.908 * bid.price < 50_000_000)
                        .map(NexmarkQueries::calculated);
            case "q15":
                return bids(false, false)
                        .windowAll(TumblingEventTimeWindows.of(Duration.ofDays(1)))
                        .aggregate(
                                new StatisticsOfBids(),
                                Types.GENERIC(Statistics.class),
                                TypeInformation.of(Result.class));
            case "q16":
                return bids(true, false)
                        .keyBy(bid -> bid.channel, Types.STRING)
                        .window(TumblingEventTimeWindows.of(Duration.ofDays(1)))
                        .aggregate(
                                new StatisticsOfBids(),
                                Types.GENERIC(Statistics.class),
                                TypeInformation.of(Result.class));
            case "q17":
                return bids(false, false)
                        .keyBy(bid -> bid.auction, Types.LONG)
                        .window(TumblingEventTimeWindows.of(Duration.ofDays(1)))
                        .aggregate(new Prices())
                        .map(sums -> Result.of(sums[0] + sums[4] + sums[5] + sums[6], sums));
            case "q18":
                return bids(true, true)
                        .keyBy(
                                bid -> Tuple2.of(bid.bidder, bid.auction),
                                Types.TUPLE(Types.LONG, Types.LONG))
                        .process(new LastBid());
            case "q19":
                return bids(true, true).keyBy(bid -> bid.auction, Types.LONG).process(new TopBids());
            case "q20":
                return auctions(true)
                        .connect(bids(true, true))
                        .keyBy(auction -> auction.id, bid -> bid.auction, Types.LONG)
                        .process(new BidsOfAuctions());
            case "q22":
                return bids(true, false)
                        .map(
                                bid -> {
                                    String[] parts = bid.url.split("/");
                                    return Result.of(
                                            bid.auction + bid.bidder + bid.price, parts[3], parts[4], parts[5]);
                                });
            default:
                throw new IllegalArgumentException("no query called " + name);
        }
    }

    /** A person for the first of its auctions in the window. */
    static final class Once extends KeyedProcessFunction<Long, Person, Result> {
        private transient ValueState<Boolean> seen;

        @Override
        public void open(OpenContext context) {
            seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Boolean.class));
        }

        @Override
        public void processElement(Person person, Context context, Collector<Result> out) throws Exception {
            if (seen.value() == null) {
                seen.update(true);
                out.collect(Result.of(person.id, person.name, person.dateTime / 10_000 * 10_000));
            }
        }
    }

    private static void each(List<Bid> bids, Collector<Result> out) {
        for (Bid bid : bids) {
            out.collect(Result.of(bid.auction + bid.bidder + bid.price, bid));
        }
    }

    private static Result calculated(Bid bid) {
        long hour = bid.dateTime / 3_600_000 % 24;
        String type = hour >= 8 && hour <= 18 ? "dayTime" : hour <= 6 || hour >= 20 ? "nightTime" : "otherTime";
        long letters = bid.extra.chars().filter(letter -> letter == 'c').count();
        return Result.of(bid.auction + bid.bidder + letters, bid, 0.908 * bid.price, type, letters);
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
        env.setRuntimeMode(RuntimeExecutionMode.STREAMING);
        env.getConfig().enableObjectReuse();
        new NexmarkQueries(
                        env, args[0], Long.parseLong(args[2]), Long.parseLong(args[3]), Long.parseLong(args[4]))
                .query(args[1])
                .sinkTo(new Checksum());
        JobExecutionResult result = env.execute(args[1]);
        System.out.printf(
                "{\"job_seconds\": %.3f, \"rows\": %d, \"sums\": %d}%n",
                result.getNetRuntime() / 1e3, Checksum.ROWS.get(), Checksum.SUMS.get());
    }
}
