"""Small numbers that stand for objects in native structures, and are reused when nothing holds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


HeldIds = Callable[[], "npt.ArrayLike"]
"""Returns the ids that a holder uses, in any order and with repetitions."""

FIRST_SWEEP = 1 << 16


class DenseIds:
    """Ids of hashable objects, from 0 on without gaps.

    An object that no holder uses may be forgotten when a new one comes, and its id given to another. That takes a
    sweep over all held ids, which runs only when as many objects have come since the last sweep as were held then:
    memory is proportional to the held objects, and an object costs O(1) amortised.

    Parameters
    ----------
    first_sweep : int
        The number of objects from which on unused ones are forgotten.
    form_of : callable, optional
        Returns the hashable form of an object: objects of equal form have one id. By default the object itself.

    Notes
    -----
    Flink needs no such thing: its timers and state tables hold the objects themselves.
    """

    def __init__(
        self, first_sweep: int = FIRST_SWEEP, form_of: Callable[[Any], Hashable] | None = None
    ) -> None:
        self._form_of = form_of
        self._ids: dict[Hashable, int] = {}
        self._objects: list[Any] = []
        self._free: list[int] = []
        self._holders: list[HeldIds] = []
        self._first_sweep = first_sweep
        self._next_sweep = first_sweep

    @property
    def ids(self) -> dict[Hashable, int]:
        """The id of every known object by its form; always the same dictionary, to be read only."""
        return self._ids

    @property
    def objects(self) -> list[Any]:
        """The objects by id, None where an id is free; always the same list, to be read only."""
        return self._objects

    def add_holder(self, held_ids: HeldIds) -> None:
        """Keep the objects whose ids a function returns."""
        self._holders.append(held_ids)

    def id_of(self, item: Any) -> int:
        """Return the id of an object, which is new if the object is unknown; O(1) amortised.

        The id is the object's while a holder uses it, and at least until the next new object comes.
        """
        form = item if self._form_of is None else self._form_of(item)
        known = self._ids.get(form)
        if known is not None:
            return known
        if len(self._ids) >= self._next_sweep:
            self._sweep()
        return self._admit(form, item)

    def ids_of(self, items: Iterable[Any]) -> npt.NDArray[np.int64]:
        """Return the ids of objects, `(n_items,)`; none of them is forgotten in favour of another."""
        import numpy as np

        known, objects = self._ids, self._objects
        items = list(items)
        forms = items if self._form_of is None else list(map(self._form_of, items))
        if not objects:
            known.update(zip(forms, range(len(items)), strict=True))
            if len(known) == len(items):
                objects += items
                return np.arange(len(items))
            known.clear()
        found = list(map(known.get, forms))
        if None not in found:
            return np.array(found, np.int64)
        if len(known) >= self._next_sweep:
            self._sweep()
        ids = []
        for form, item in zip(forms, items, strict=True):
            id_ = known.get(form)
            if id_ is None:
                if self._free:
                    id_ = self._admit(form, item)
                else:
                    known[form] = id_ = len(objects)
                    objects.append(item)
            ids.append(id_)
        return np.array(ids, np.int64)

    def _admit(self, form: Hashable, item: Any) -> int:
        if self._free:
            new = self._free.pop()
            self._objects[new] = item
        else:
            new = len(self._objects)
            self._objects.append(item)
        self._ids[form] = new
        return new

    def _sweep(self) -> None:
        import numpy as np

        held = [np.asarray(holder(), np.int64) for holder in self._holders]
        used = np.zeros(len(self._objects), np.bool_)
        for ids in held:
            used[ids[ids >= 0]] = True
        unused = [form for form, id_ in self._ids.items() if not used[id_]]
        for form in unused:
            id_ = self._ids.pop(form)
            self._objects[id_] = None
            self._free.append(id_)
        swept = max(len(self._ids), sum(map(len, held)), self._first_sweep)
        self._next_sweep = len(self._ids) + swept

    def _check(self) -> None:
        """Assert every invariant."""
        assert len(set(self._ids.values())) == len(self._ids)
        assert sorted(chain(self._ids.values(), self._free)) == list(range(len(self._objects)))
        assert all(self._objects[id_] is None for id_ in self._free)
        form_of = self._form_of or (lambda item: item)
        assert all(form_of(self._objects[id_]) == form for form, id_ in self._ids.items())
