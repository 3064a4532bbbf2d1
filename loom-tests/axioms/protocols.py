"""The crate's protocols as litmus programs, with the orderings that the source has.

Here are the protocols that rest on more than loom's models show: on what two SeqCst fences or accesses promise, on a
load that may take a value stored later, or on an ordering that no other test notices (`ORDERINGS.md`). Each program
is a part of a protocol: two or three threads that meet, and the outcome that must not be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace as Sites
from typing import Any

from programs import PLAIN, RLX, SC, Order, Program, Steps, Thread, cas, fence, read, swap, update, wait_for, write
from source import Site

CLOCK = "shard/shared/clock.rs"
COUNTS = "shard/shared/counts.rs"
LANES = "shard/shared/lanes/mod.rs"
WAKER = "shard/shared/advancer_waker.rs"
WHEEL = "shard/wheel/mod.rs"
CELL = "shard/node/cell.rs"
BITS = "shard/memory/free_bits.rs"
RETIRE = "shard/memory/slab/retire.rs"
TABLE = "shard/memory/table.rs"
NOTIFIER = "timer/threads/notifier.rs"
SLOT = "timer/shard/advancer_slot.rs"

Place = Site | Order
"""Where an ordering stands in the source; or the ordering, where another library or the system promises it."""


@dataclass(frozen=True)
class Protocol:
    """A program and where its orderings come from. With a weaker ordering at one of `needed` it must fail."""

    program: Program
    sites: Mapping[str, Place]
    needed: tuple[str, ...]


def protocol(
    name: str,
    threads: tuple[Thread, ...],
    sites: Mapping[str, Place],
    needed: tuple[str, ...],
    bad: Callable[[Any], bool] = lambda _: False,
    bad_memory: Callable[[dict[str, int]], bool] = lambda _: True,
    **init: int,
) -> Protocol:
    """A protocol. A data race is bad as well."""
    orders = {site: place.order() if isinstance(place, Site) else place for site, place in sites.items()}
    return Protocol(Program(name, threads, bad, bad_memory, init, orders), sites, needed)


# ---- pairs: each side changes its own word, passes a fence, and looks at the other's -------------


def side(register: str, own: str, other: str) -> Thread:
    """One side. Where the source changes the word by a read-modify-write, a store here allows as much and more."""

    def body(o: Sites) -> Steps:
        yield write(own, 1, getattr(o, f"{register}_writes"))
        yield fence(getattr(o, f"{register}_fence"))
        return {register: (yield read(other, getattr(o, f"{register}_looks")))}

    return body


def pair(name: str, one: tuple[Place, Place, Place], other: tuple[Place, Place, Place]) -> Protocol:
    """Each side is the write, the fence and the look. One of the two sees what the other has written."""
    steps = ("writes", "fence", "looks")
    sites = {f"one_{step}": place for step, place in zip(steps, one)}
    sites |= {f"other_{step}": place for step, place in zip(steps, other)}
    threads = side("one", "x", "y"), side("other", "y", "x")
    return protocol(name, threads, sites, ("one_fence", "other_fence"), lambda r: not r.one and not r.other)


MARK = Site(WHEEL, "mark", "word.fetch_or(")
IS_OCCUPIED = Site(WHEEL, "is_occupied", "word.load(")
FILL = Site(CELL, "fill", "word.store(")
WORD = Site(CELL, "word", "word.load(")
PUSH_TO_INBOX = Site("shard/shared/inbox.rs", "push", "compare_exchange_weak(")
HAS_INBOX = Site("shard/shared/inbox.rs", "holds_any", "load(")

READ_FENCE = Site(CLOCK, "fence_and_read", "fence(")
SEALED = Site(CLOCK, "fence_and_read", "sealed.load(")
SEAL, SEAL_FENCE = Site(CLOCK, "seal", "sealed.store("), Site(CLOCK, "seal", "fence(")
WAKE_UP_TO = Site(CLOCK, "fence_and_read", "wake_up_to.load(")
SLEEP = Site(CLOCK, "publish_wake_at", "wake_up_to.store("), Site(CLOCK, "publish_wake_at", "fence(")
CLOSE = Site(CLOCK, "close", "closed.store("), Site(CLOCK, "close", "fence(")
PASS = Site(CLOCK, "publish_now", "now.store("), Site(CLOCK, "pass_fence", "fence(")

REPORT = Site(COUNTS, "report_dead", "reported.fetch_add(")
REPORT_FENCE = Site(COUNTS, "report_dead", "fetch_add(more", 1)
LOWER = Site(COUNTS, "check_dead", "sweep_at.store("), Site(COUNTS, "check_dead", "fence(")
ASK = Site(COUNTS, "report_dead", "sweep_requested.swap(")
ASK_FENCE = Site(COUNTS, "report_dead", "sweep_requested.swap(", 1)

REQUEST = Site(NOTIFIER, "request", "swap(true"), Site(NOTIFIER, "request", "fence(")
IS_REQUESTED = Site(NOTIFIER, "is_requested", "load(")
LEAD_FENCE = Site(NOTIFIER, "lead", "fence(")
LOOK = Site(NOTIFIER, "announce_look", "looks_at.store("), Site(NOTIFIER, "announce_look", "fence(")


def pairs() -> list[Protocol]:
    return [
        pair("schedule against flush", (MARK, READ_FENCE, SEALED), (SEAL, SEAL_FENCE, IS_OCCUPIED)),
        pair("schedule against sleep", (MARK, READ_FENCE, WAKE_UP_TO), (*SLEEP, IS_OCCUPIED)),
        pair("the inbox against sleep", (PUSH_TO_INBOX, READ_FENCE, WAKE_UP_TO), (*SLEEP, HAS_INBOX)),
        pair("a reused node against sleep", (FILL, READ_FENCE, WAKE_UP_TO), (*SLEEP, WORD)),
        pair(
            "schedule against the end",
            (FILL, READ_FENCE, Site(CLOCK, "is_closed", "closed.load(")),
            (*CLOSE, WORD),
        ),
        pair(
            "a busy node against its flush",
            (FILL, READ_FENCE, Site(CLOCK, "fence_and_read", "now.load(")),
            (*PASS, WORD),
        ),
        pair(
            "reports of dead nodes",
            (REPORT, REPORT_FENCE, Site(COUNTS, "report_dead", "sweep_at.load(")),
            (*LOWER, Site(COUNTS, "check_dead", "is_reached(sweep_at,")),
        ),
        pair(
            "a request for a sweep against sleep",
            (ASK, ASK_FENCE, WAKE_UP_TO),
            (*SLEEP, Site(COUNTS, "is_sweep_requested", "sweep_requested.load(")),
        ),
        pair(
            "a request against a new leader",
            (*REQUEST, Site(NOTIFIER, "leader", "leader.load(")),
            (Site(NOTIFIER, "lead", "leader.store("), LEAD_FENCE, IS_REQUESTED),
        ),
        pair(
            "a request against a visit",
            (*REQUEST, Site(NOTIFIER, "busy_since", "busy_since.load(")),
            (Site(NOTIFIER, "lead", "busy_since.store("), LEAD_FENCE, IS_REQUESTED),
        ),
        pair(
            "a request against the watchdog's sleep",
            (*REQUEST, Site(NOTIFIER, "ensure_look", "looks_at.load(")),
            (*LOOK, IS_REQUESTED),
        ),
    ]


def last_bucket_of_a_wheel() -> Protocol:
    """A producer sees a `last` that another producer has raised, and does not raise it: so it is with a list's bit."""

    def raiser(o: Sites) -> Steps:
        yield update("last", lambda old: max(old, 1), o.raise_last)

    def producer(o: Sites) -> Steps:
        if not (yield read("last", o.last)):
            yield update("last", lambda old: max(old, 1), o.raise_last)
        yield fence(o.read_fence)
        return {"pushed": 1 - (yield read("sealed", o.sealed))}

    def advancer(o: Sites) -> Steps:
        yield write("sealed", 1, o.seal)
        yield fence(o.seal_fence)
        return {"looks": (yield read("last", o.may_hold))}

    return protocol(
        "the last bucket of a wheel",
        (raiser, producer, advancer),
        {
            "last": Site(WHEEL, "mark", "last.load("),
            "raise_last": Site(WHEEL, "mark", "last.fetch_max("),
            "read_fence": READ_FENCE,
            "sealed": SEALED,
            "seal": SEAL,
            "seal_fence": SEAL_FENCE,
            "may_hold": Site(WHEEL, "may_hold_from", "last.load("),
        },
        needed=("read_fence", "seal_fence"),
        bad=lambda r: r.pushed and not r.looks,
    )


def shutdown_against_user_code() -> Protocol:
    """`slot`, then `stopping`; and `stopping`, then `slot`; all of them SeqCst."""

    def worker(o: Sites) -> Steps:
        yield write("advancer", 1, PLAIN)
        yield write("is_executor", 1, o.note_executor)
        yield swap("slot", 1, o.swap)
        return {"notifies": (yield read("stopping", o.stopping))}

    def shutdown(o: Sites) -> Steps:
        yield swap("stopping", 1, o.stop)
        if not (yield read("is_executor", o.is_executor)) or not (yield swap("slot", 0, o.swap)):
            return {"takes": 0}
        yield read("advancer", PLAIN)
        return {"takes": 1}

    return protocol(
        "a shutdown against user code",
        (worker, shutdown),
        {
            "note_executor": Site(SLOT, "note_executor", "store("),
            "swap": Site("fallible.rs", "swap", "place.swap("),
            "stopping": Site(SLOT, "put", "stopping.load("),
            "stop": Site(SLOT, "stop", "stopping.swap("),
            "is_executor": Site(SLOT, "take_from_executor", "is_executor.load("),
        },
        needed=("note_executor", "stopping", "stop", "is_executor"),
        bad=lambda r: not r.notifies and not r.takes,
    )


def call_against_a_revocation() -> Protocol:
    """`busy`, a barrier, `revoked`; and `revoked`, a barrier, `busy`."""

    def thread(o: Sites) -> Steps:
        yield write("busy", 1, o.busy)
        yield fence(o.thread_barrier)
        if not (yield read("revoked", o.revoked)):
            yield write("local", 1, PLAIN)
        yield write("busy", 0, o.leave)

    def advancer(o: Sites) -> Steps:
        yield write("revoked", 1, o.revoke)
        yield fence(o.advancer_barrier)
        if not (yield read("busy", o.is_busy)):
            yield write("local", 2, PLAIN)
        yield write("revoked", 0, o.give_back)

    return protocol(
        "a call against a revocation",
        (thread, advancer),
        {
            "busy": Site(LANES, "enter", "busy.store(true"),
            # `membarrier` makes a fence of the compiler's.
            "thread_barrier": Site(LANES, "enter", "compiler_fence("),
            "revoked": Site(LANES, "enter", "revoked.load("),
            "leave": Site(LANES, "drop", "busy.store("),
            "advancer_barrier": SC,
            "is_busy": Site(LANES, "take_nodes", "busy.load("),
            "revoke": Site(LANES, "revoke", "revoked.store(true"),
            "give_back": Site(LANES, "revoke", "revoked.store(false"),
        },
        needed=("thread_barrier", "advancer_barrier", "leave", "is_busy", "revoked", "give_back"),
    )


def call_in_vain_against_a_revocation() -> Protocol:
    """A call, and a second one of the same thread that finds the lane revoked.

    The barrier falls into the first call: the advancer sees that call's `busy`, or a later one. So no fence is left
    that orders what the call has written.
    """
    unused, in_call, left, left_in_vain = range(4)

    def thread(o: Sites) -> Steps:
        yield write("busy", in_call, o.busy)
        yield write("local", 1, PLAIN)
        yield write("busy", left, o.leave)
        yield write("busy", in_call, o.busy)
        yield write("busy", left_in_vain, o.leave)

    def advancer(o: Sites) -> Steps:
        busy = yield read("busy", o.is_busy)
        wait_for(busy != unused)
        if busy in (left, left_in_vain):
            yield write("local", 2, PLAIN)

    return protocol(
        "a call in vain against a revocation",
        (thread, advancer),
        {
            "busy": Site(LANES, "enter", "busy.store(true"),
            # The only place of the file where a call ends, also in vain.
            "leave": Site(LANES, "", "busy.store(false"),
            "is_busy": Site(LANES, "take_nodes", "busy.load("),
        },
        needed=("leave", "is_busy"),
    )


# ---- messages: what is written before a flag is there for who takes the flag ---------------------


def message(name: str, gives: Place, takes: Place) -> Protocol:
    def sender(o: Sites) -> Steps:
        yield write("data", 1, RLX)
        yield swap("flag", 1, o.gives)

    def receiver(o: Sites) -> Steps:
        wait_for((yield read("flag", o.takes)) == 1)
        return {"data": (yield read("data", RLX))}

    sites = {"gives": gives, "takes": takes}
    return protocol(name, (sender, receiver), sites, ("gives", "takes"), lambda r: not r.data)


def messages() -> list[Protocol]:
    return [
        message("the count before a report of dead nodes", REPORT, Site(COUNTS, "check_dead", "let reported =")),
        message("the dead before a request for a sweep", ASK, Site(COUNTS, "take_sweep_request", "sweep_requested.swap(")),
        message("what is due before a request", REQUEST[0], Site(NOTIFIER, "take_request", "swap(false")),
    ]


def registered_waker() -> Protocol:
    """A producer that sees the number of a sleep finds the waker registered before it, or a later one."""

    def advancer(o: Sites) -> Steps:
        for number in (1, 2):
            yield write(f"waker{number}", 1, PLAIN)
            yield swap("place", number, o.replace)
            yield write("sleep", number, o.begin_sleep)

    def producer(o: Sites) -> Steps:
        sleep = yield read("sleep", o.sleep)
        wait_for(sleep > 0)
        found = yield read("place", o.get)
        if found:
            yield read(f"waker{found}", PLAIN)
        return {"is_old": int(found < sleep)}

    return protocol(
        "the advancer's waker",
        (advancer, producer),
        {
            "replace": Site(TABLE, "replace", "places[index].swap("),
            "begin_sleep": Site(WAKER, "begin_sleep", "sleep.store("),
            "sleep": Site(WAKER, "pending_wake", "sleep.load("),
            "get": Site(TABLE, "get", "load("),
        },
        needed=("begin_sleep", "sleep", "replace", "get"),
        bad=lambda r: r.is_old,
    )


# ---- memory -------------------------------------------------------------------------------------

GIVE = Site(BITS, "set", "words[word].fetch_or(")
TAKE = Site(BITS, "take", "swap(0")


def reuse_after_a_cancel() -> Protocol:
    """The canceller takes the payload out, the advancer frees the node, a producer fills it again."""
    free, pending, busy, cancelled, pending_again = range(5)

    def cancels(o: Sites) -> Steps:
        wait_for((yield cas("word", pending, busy, o.win)) == pending)
        yield read("payload", PLAIN)
        yield write("word", cancelled, o.cancelled)

    def frees(o: Sites) -> Steps:
        wait_for((yield read("word", o.word)) == cancelled)
        wait_for((yield cas("word", cancelled, free, o.win)) == cancelled)
        yield update("bits", lambda old: old | 1, o.give)

    def reuses(o: Sites) -> Steps:
        wait_for((yield swap("bits", 0, o.take)) == 1)
        seen = yield read("word", o.peek)
        yield write("payload", 2, PLAIN)
        yield write("word", pending_again, o.fill)
        return {"is_free": int(seen == free)}

    return protocol(
        "reuse after a cancel",
        (cancels, frees, reuses),
        {
            "win": Site(CELL, "replace", "let (success, failure) ="),
            "cancelled": Site(CELL, "cancelled", "word.store("),
            "word": WORD,
            "give": GIVE,
            "take": TAKE,
            "peek": Site(CELL, "peek", "word.load("),
            "fill": FILL,
        },
        needed=("cancelled", "give", "take"),
        bad=lambda r: not r.is_free,
        word=pending,
    )


def free_bits() -> Protocol:
    """A word with free nodes whose bit of the summary is clear, after both threads are done, is lost."""

    def gives(o: Sites) -> Steps:
        yield update("word", lambda old: old | 1, o.give)
        yield update("summary", lambda old: old | 1, o.give_summary)

    def takes(o: Sites) -> Steps:
        yield update("summary", lambda _: 0, o.take_summary)
        yield swap("word", 0, o.take)

    return protocol(
        "free bits against their summary",
        (gives, takes),
        {
            "give": GIVE,
            "give_summary": Site(BITS, "set", "summary[word / WORD_NODES].fetch_or("),
            "take_summary": Site(BITS, "take", "fetch_and("),
            "take": TAKE,
        },
        needed=("give_summary", "take_summary"),
        bad=lambda _: True,
        bad_memory=lambda last: last["word"] == 1 and last["summary"] == 0,
    )


def mark_of_an_empty_segment() -> Protocol:
    """A segment that two threads have completed, which the advancer took for one in use, and whose mark is clear."""

    def gives(o: Sites) -> Steps:
        if (yield update("count", lambda old: old + 1, o.count)) == 1:
            yield update("mark", lambda _: 1, o.mark)

    def looks(o: Sites) -> Steps:
        yield update("mark", lambda _: 0, o.clear)
        return {"seen": (yield read("count", o.look))}

    return protocol(
        "the mark of an empty segment",
        (gives, gives, looks),
        {
            "count": Site(BITS, "give", "count.fetch_add("),
            "mark": Site(RETIRE, "mark_empty", "fetch_or("),
            "clear": Site(RETIRE, "take_if_empty", "fetch_and("),
            "look": Site(BITS, "count", "count.load("),
        },
        needed=("mark", "clear"),
        bad=lambda r: r.seen != 2,
        bad_memory=lambda last: last["mark"] == 0,
        mark=1,
    )


ALL = [
    *pairs(),
    last_bucket_of_a_wheel(),
    shutdown_against_user_code(),
    call_against_a_revocation(),
    call_in_vain_against_a_revocation(),
    *messages(),
    registered_waker(),
    reuse_after_a_cancel(),
    free_bits(),
    mark_of_an_empty_segment(),
]
