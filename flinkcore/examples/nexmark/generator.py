"""Seeded events of Nexmark, an auction site: persons who register, auctions that they open, and bids.

Among 50 events, 1 is a person, 3 are auctions and 46 are bids. Ids, hot sellers, bidders, auctions and channels,
prices, the lengths of auctions and the sizes of texts follow the rules of Nexmark's generator. What differs, and why:

- every value is a hash of (seed, event number), and the log starts at a fixed time (Nexmark's: unseeded, wall clock),
  so that a log is the same wherever and in whatever parts it is made;
- events are shuffled within groups of `disorder_ms` (Nexmark's: a stride of 953), so that they arrive out of order by
  up to that time, and never by more;
- prices are taken from 65,536 steps of the same distribution, and texts are of lower-case letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkcore.errors import ConfigurationError

Numbers = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

FIRST_ID = 1_000
EVENTS_PER_ROUND = 50
AUCTIONS_PER_ROUND = 3
FIRST_BID_OF_ROUND = 1 + AUCTIONS_PER_ROUND
BIDS_PER_ROUND = EVENTS_PER_ROUND - FIRST_BID_OF_ROUND
HOT_STRIDE = 100
ID_LEAD = 10
"""Ids of as many persons and auctions are used before these are there."""

AUCTIONS_IN_FLIGHT = 100
CATEGORIES = 5
FIRST_CATEGORY = 10
PRICES = 1 << 16
CHANNELS = 10_000

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
FIRST_NAMES = (
    *("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"),
)
LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    *("Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent"),
    "Cheyenne",
)

PERSON_BYTES, AUCTION_BYTES, BID_BYTES = 200, 500, 100
"""Mean sizes of events; those of times, channels and addresses do not count."""

TIME = pa.timestamp("ms")
PERSON = pa.schema(
    {
        "id": pa.int64(),
        "name": pa.string(),
        "email_address": pa.string(),
        "credit_card": pa.string(),
        "city": pa.string(),
        "state": pa.string(),
        "date_time": TIME,
        "extra": pa.string(),
        "arrival": TIME,
    }
)
AUCTION = pa.schema(
    {
        "id": pa.int64(),
        "item_name": pa.string(),
        "description": pa.string(),
        "initial_bid": pa.int64(),
        "reserve": pa.int64(),
        "date_time": TIME,
        "expires": TIME,
        "seller": pa.int64(),
        "category": pa.int64(),
        "extra": pa.string(),
        "arrival": TIME,
    }
)
BID = pa.schema(
    {
        "auction": pa.int64(),
        "bidder": pa.int64(),
        "price": pa.int64(),
        "channel": pa.string(),
        "url": pa.string(),
        "date_time": TIME,
        "extra": pa.string(),
        "arrival": TIME,
    }
)

_FOUR_DIGITS = tuple(f"{number:04}" for number in range(10_000))
_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_OFFSET_MASK = np.uint64((1 << 20) - 1)

# Sequences of hashes; those of seed + 1 and further ones are of texts and of what only some events have.
_ORDER, _AUCTION, _BIDDER, _PRICE, _CHANNEL, _SECOND_PRICE, _PERSON, _LENGTH = range(8)
_TEXTS = 16
"""Texts take the seeds from here on."""


def splitmix64(seed: int, stream: int, number: Numbers) -> Hashes:
    """Return the splitmix64 output of each number (n,); the streams 0 to 7 are independent sequences."""
    with np.errstate(over="ignore"):
        z = (number.astype(np.uint64) * np.uint64(8) + np.uint64(stream + 1)) * _GAMMA + np.uint64(seed)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def _below(random: Hashes, bound: int | Numbers) -> Numbers:
    """Uniform numbers in [0, bound), from the upper 31 bits of each hash."""
    return ((random >> np.uint64(33)) * np.asarray(bound, np.uint64) >> np.uint64(31)).astype(np.int64)


class Log(NamedTuple):
    """The events of each kind, in order of arrival: tables, or whatever else `from_event_log` takes."""

    persons: object
    auctions: object
    bids: object


@dataclass(frozen=True)
class Generator:
    """Makes a log of events; equal parameters give equal events on every machine.

    Attributes
    ----------
    events : int
        Number of events of all kinds.
    seed : int
    events_per_second : int
        In event time, and in arrivals.
    disorder_ms : int
        Largest time by which events are out of order, or 0 if they arrive in order.
    active_people : int
        So many persons, the last to register, bid and sell.
    people_before : int
        Persons who registered before the log.
    hot_bidders_of_1024 : int
        Number of bids of each 1,024 that are of the current hot bidder.
    base_ms : int
        Event time of the first event.

    Raises
    ------
    ConfigurationError
        If events out of order are not whole rounds of 50, or more than 2**20.
    """

    events: int = 1_000_000
    seed: int = 42
    events_per_second: int = 10_000
    disorder_ms: int = 4_000
    active_people: int = 1_000
    people_before: int = 0
    hot_bidders_of_1024: int = 768
    base_ms: int = 1_735_689_600_000  # 2025-01-01T00:00:00Z

    def __post_init__(self) -> None:
        group, rest = divmod(self.events_per_second * self.disorder_ms, 1_000)
        if rest or group % EVENTS_PER_ROUND or not 0 <= group <= int(_OFFSET_MASK):
            raise ConfigurationError(
                f"{self.events_per_second} events per second, out of order by {self.disorder_ms} ms, are shuffled in "
                f"groups of {group}; that is to be a multiple of {EVENTS_PER_ROUND} below 2**20"
            )

    @cached_property
    def order(self) -> Numbers:
        """Event numbers of a group, relative to its first, in order of arrival (n_group,)."""
        if self.disorder_ms == 0:
            return np.arange(EVENTS_PER_ROUND)
        offset = np.arange(self.events_per_second * self.disorder_ms // 1_000, dtype=np.uint64)
        hashes = splitmix64(self.seed, _ORDER, offset.astype(np.int64))
        shuffled = np.sort((hashes & ~_OFFSET_MASK) | offset)
        return (shuffled & _OFFSET_MASK).astype(np.int64)

    def log(self) -> Log:
        """Return the whole log as tables."""
        kinds = zip(*self.batches(), strict=True)
        return Log(*(pa.Table.from_batches(batches) for batches in kinds))

    def batches(self, events: int = 1_000_000) -> Iterator[tuple[pa.RecordBatch, ...]]:
        """Yield persons, auctions and bids of so many events at a time, in order of arrival."""
        for start in range(0, self.events, events):
            yield self.slice(start, min(start + events, self.events))

    def slice(self, start: int, stop: int) -> tuple[pa.RecordBatch, ...]:
        """Return persons, auctions and bids among the events [start, stop), made without the ones before."""
        return self.persons(start, stop), self.auctions(start, stop), self.bids(start, stop)

    def _events(self, start: int, stop: int, first: int, end: int) -> tuple[Numbers, Numbers]:
        """Numbers and arrivals of events [start, stop) that are between two places of their round."""
        position = np.arange(start, stop, dtype=np.int64)
        group, index = np.divmod(position, len(self.order))
        number = group * len(self.order) + self.order[index]
        place = number % EVENTS_PER_ROUND
        is_wanted = (place >= first) & (place < end)
        return number[is_wanted], self.base_ms + position[is_wanted] * 1_000 // self.events_per_second

    def event_time(self, number: Numbers) -> Numbers:
        """Return the event times of events (n,), in ms."""
        return self.base_ms + number * 1_000 // self.events_per_second

    def bid_auctions(self, number: Numbers) -> Numbers:
        """Return what bids are for (n,): half of them for the hot auction of the moment."""
        auctions = number // EVENTS_PER_ROUND * AUCTIONS_PER_ROUND + AUCTIONS_PER_ROUND - 1
        random = splitmix64(self.seed, _AUCTION, number)
        first = np.maximum(auctions - AUCTIONS_IN_FLIGHT, 0)
        cold = first + _below(random, auctions - first + 1 + ID_LEAD)
        return FIRST_ID + np.where(random & np.uint64(1), auctions // HOT_STRIDE * HOT_STRIDE, cold)

    def bidders(self, number: Numbers) -> Numbers:
        """Return who bids (n,)."""
        people = self._last_person(number)
        random = splitmix64(self.seed, _BIDDER, number)
        is_hot = random & np.uint64(1023) < self.hot_bidders_of_1024
        return FIRST_ID + np.where(is_hot, people // HOT_STRIDE * HOT_STRIDE + 1, self._cold(random, people))

    def prices(self, number: Numbers, stream: int = _PRICE) -> Numbers:
        """Return prices (n,): uniform in their logarithm."""
        prices: Numbers = self._price_of[splitmix64(self.seed, stream, number) >> np.uint64(48)]
        return prices

    @cached_property
    def _price_of(self) -> Numbers:
        return np.rint(100 * 10.0 ** (6 * np.arange(PRICES) / PRICES)).astype(np.int64)

    def _last_person(self, number: Numbers) -> Numbers:
        return self.people_before + number // EVENTS_PER_ROUND

    def _cold(self, random: Hashes, last_person: Numbers) -> Numbers:
        """Return one of the active people, or of the next ones."""
        active = np.minimum(last_person + 1, self.active_people)
        return last_person + 1 - active + _below(random, active + ID_LEAD)

    def persons(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the persons among the events [start, stop)."""
        number, arrival = self._events(start, stop, 0, 1)
        random = splitmix64(self.seed + 1, _PERSON, number)
        first, last = _below(random, len(FIRST_NAMES)), _below(random << np.uint64(8), len(LAST_NAMES))
        names = [f"{given} {family}" for given in FIRST_NAMES for family in LAST_NAMES]
        length = splitmix64(self.seed + 1, _LENGTH, number)
        email = pc.binary_join_element_wise(
            _texts(self.seed + _TEXTS, number, 3 + _below(length, 4)),
            pc.binary_join_element_wise(
                _texts(self.seed + _TEXTS + 1, number, 3 + _below(length << np.uint64(16), 2)), "com", "."
            ),
            "@",
        )
        groups = [
            _taken(_FOUR_DIGITS, _below(random << np.uint64(shift), 10_000)) for shift in (4, 12, 20, 28)
        ]
        texts = [
            _taken(names, first * len(LAST_NAMES) + last),
            email,
            pc.binary_join_element_wise(*groups, " "),
            _taken(CITIES, _below(random << np.uint64(24), len(CITIES))),
            _taken(STATES, _below(random << np.uint64(30), len(STATES))),
        ]
        columns = [
            FIRST_ID + self._last_person(number),
            *texts,
            _times(self.event_time(number)),
            self._extra(_TEXTS + 2, number, PERSON_BYTES - 8 - _lengths(texts)),
            _times(arrival),
        ]
        return pa.record_batch(columns, schema=PERSON)

    def auctions(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the auctions among the events [start, stop)."""
        number, arrival = self._events(start, stop, 1, FIRST_BID_OF_ROUND)
        in_round = number % EVENTS_PER_ROUND - 1
        people = self._last_person(number)
        random = splitmix64(self.seed + 1, _AUCTION, number)
        is_hot = random & np.uint64(1023) < self.hot_bidders_of_1024
        seller = np.where(is_hot, people // HOT_STRIDE * HOT_STRIDE, self._cold(random, people))
        initial = self.prices(number)
        date_time = self.event_time(number)
        length = splitmix64(self.seed + 1, _LENGTH, number)
        item = _texts(self.seed + _TEXTS + 3, number, 3 + _below(length, 17))
        description = _texts(self.seed + _TEXTS + 4, number, 3 + _below(length << np.uint64(16), 97))
        columns = [
            FIRST_ID + number // EVENTS_PER_ROUND * AUCTIONS_PER_ROUND + in_round,
            item,
            description,
            initial,
            initial + self.prices(number, _SECOND_PRICE),
            _times(date_time),
            _times(
                date_time + 1 + _below(splitmix64(self.seed + 1, _ORDER, number), self.longest_auction_ms)
            ),
            FIRST_ID + seller,
            FIRST_CATEGORY + _below(random << np.uint64(10), CATEGORIES),
            self._extra(_TEXTS + 5, number, AUCTION_BYTES - 6 * 8 - _lengths([item, description])),
            _times(arrival),
        ]
        return pa.record_batch(columns, schema=AUCTION)

    @property
    def longest_auction_ms(self) -> int:
        """Return how long auctions last at most: twice the time in which as many are opened as are in flight."""
        events = AUCTIONS_IN_FLIGHT * EVENTS_PER_ROUND // AUCTIONS_PER_ROUND
        return max(2 * (events * 1_000 // self.events_per_second), 1)

    def bids(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the bids among the events [start, stop)."""
        number, arrival = self._events(start, stop, FIRST_BID_OF_ROUND, EVENTS_PER_ROUND)
        random = splitmix64(self.seed, _CHANNEL, number)
        is_hot = (random & np.uint64(1)).astype(np.bool_)
        channel = np.where(
            is_hot, _below(random, len(HOT_CHANNELS)), len(HOT_CHANNELS) + _below(random, CHANNELS)
        )
        names, urls = self._channels
        columns = [
            self.bid_auctions(number),
            self.bidders(number),
            self.prices(number),
            _taken(names, channel),
            _taken(urls, channel),
            _times(self.event_time(number)),
            self._extra(_TEXTS + 6, number, np.full(len(number), BID_BYTES - 4 * 8)),
            _times(arrival),
        ]
        return pa.record_batch(columns, schema=BID)

    @cached_property
    def _channels(self) -> tuple[list[str], list[str]]:
        """Names and addresses of the channels, the hot ones first; nine in ten of the others have an id."""
        number = np.arange(len(HOT_CHANNELS) + CHANNELS)
        folders = [_texts(self.seed + _TEXTS + 7 + part, number, 5).to_pylist() for part in range(3)]
        has_id = _below(splitmix64(self.seed + 1, _CHANNEL, number), 10) > 0
        names, urls = list(HOT_CHANNELS), []
        for at, path in enumerate(zip(*folders, strict=True)):
            urls.append(f"https://www.nexmark.com/{'/'.join(path)}/item.htm?query=1")
            if at >= len(HOT_CHANNELS):
                channel = at - len(HOT_CHANNELS)
                names.append(f"channel-{channel}")
                if has_id[at]:
                    urls[-1] += f"&channel_id={_reversed(channel)}"
        return names, urls

    def _extra(self, text: int, number: Numbers, missing: Numbers) -> pa.Array:
        """Texts that make up for what is missing to the mean size of an event, by up to a fifth more or less."""
        missing = np.maximum(missing, 0)
        spread = np.rint(missing * 0.2).astype(np.int64)
        lengths = missing - spread + _below(splitmix64(self.seed + text, _LENGTH, number), 2 * spread)
        return _texts(self.seed + text, number, lengths)


def _times(times_ms: Numbers) -> pa.Array:
    return pa.array(times_ms).view(TIME)


def _taken(texts: list[str] | tuple[str, ...], index: Numbers) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(index))


def _lengths(texts: list[pa.Array]) -> Numbers:
    """Return how long some texts of each event are together."""
    total: Numbers = sum(pc.binary_length(column).to_numpy().astype(np.int64) for column in texts)
    return total


def _texts(seed: int, number: Numbers, lengths: int | Numbers) -> pa.Array:
    """Texts of letters, each a function of seed and number."""
    lengths = np.broadcast_to(np.asarray(lengths, np.int64), number.shape)
    longest = int(lengths.max(initial=0))
    words = -(-longest // 8)
    at = (number[:, None] * 128 + np.arange(words)).ravel()
    letters = splitmix64(seed, _PERSON, at).view(np.uint8).reshape(len(number), 8 * words)
    letters = (letters.astype(np.uint16) * 26 >> 8).astype(np.uint8) + ord("a")
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    kept = letters[np.arange(8 * words) < lengths[:, None]]
    return pa.StringArray.from_buffers(len(number), pa.py_buffer(offsets), pa.py_buffer(kept))


def _reversed(number: int) -> int:
    """Return the number with its 32 bits in reverse order, without its sign."""
    bits = int(f"{number:032b}"[::-1], 2)
    return abs(bits - (1 << 32) if bits >> 31 else bits)
