"""The crate's protocols as litmus programs, with the orderings that the source has.

Each program is a part of a protocol: two or three threads that meet, and the outcome that must not
be. `PAIRS` names the pairs in which each side writes its own word and then looks at the other's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace as Sites
from typing import Any

from programs import (
    ACQ,
    PLAIN,
    REL,
    RLX,
    SC,
    Op,
    Program,
    Steps,
    Thread,
    cas,
    fence,
    read,
    swap,
    update,
    wait_for,
    write,
)
from source import Assumed, Site, Weakest

PROTOCOL = "shard/shared/clock.rs"
INBOX = "shard/shared/inbox.rs"
WHEEL = "shard/wheel/mod.rs"
CELL = "shard/node/cell.rs"
NOTIFIER = "timer/threads/notifier.rs"
WAKER = "shard/shared/advancer_waker.rs"
COUNTS = "shard/shared/counts.rs"

Place = Site | Weakest | Assumed


@dataclass(frozen=True)
class Protocol:
    """A program and where its orderings come from. Without one of `needed` it must fail."""

    program: Program
    sites: Mapping[str, Place]
    needed: tuple[str, ...]


def protocol(
    name: str,
    threads: tuple[Thread, ...],
    sites: Mapping[str, Place],
    bad: Callable[[Any], bool],
    bad_memory: Callable[[Any, dict[str, int]], bool] = lambda _registers, _memory: True,
    needed: tuple[str, ...] = (),
    **init: int,
) -> Protocol:
    orders = {site: place.order() for site, place in sites.items()}
    return Protocol(Program(name, threads, bad, bad_memory, init, orders), sites, needed)


READ_FENCE = Site(PROTOCOL, "fence_and_read", "fence(")
PARKER_NOTIFY = Site("timer/parker.rs", "notify", "notified.swap(true")
PARKER_CLEAR = Site("timer/parker.rs", "clear", "notified.swap(false")


# ---- schedule against flush ---------------------------------------------------------------------

EMPTY, NODE, OTHER, NEXT_ROUND = 0, 1, 2, 9
"""Heads of a list: of this round, empty; one node or the other; empty, of the next round."""


def producer_of_list(node: int, name: str) -> Thread:
    def body(o: Sites) -> Steps:
        if not (yield read("bit", o.mark_load)):
            yield update("bit", lambda _: 1, o.mark)
        yield fence(o.read_fence)
        if (yield read("sealed", o.sealed)):
            return {name: 0}
        seen = yield read("head", o.head_load)
        wait_for(seen in (EMPTY, NODE, OTHER, NEXT_ROUND))
        if seen == NEXT_ROUND:
            return {name: 0}
        yield write(f"link{node}", 1 + seen, o.link)
        wait_for((yield cas("head", seen, node, o.push)) == seen)
        return {name: 1}

    return body


def flusher(o: Sites) -> Steps:
    yield write("sealed", 1, o.seal)
    yield fence(o.seal_fence)
    taken = [0, 0, 0]
    links = 1
    if (yield read("bit", o.look)):
        yield update("bit", lambda _: 0, o.clear_bits)
        first = yield swap("head", NEXT_ROUND, o.flush)
        while first in (NODE, OTHER) and not taken[first]:
            taken[first] = 1
            link = yield read(f"link{first}", o.walk)
            links, first = min(links, link), link - 1
    return {"taken1": taken[NODE], "taken2": taken[OTHER], "links": links}


LIST_SITES: dict[str, Place] = {
    "mark_load": Site(WHEEL, "mark", "word.load("),
    "mark": Site(WHEEL, "mark", "word.fetch_or("),
    "read_fence": READ_FENCE,
    "sealed": Site(PROTOCOL, "fence_and_read", "sealed.load("),
    "head_load": Site(WHEEL, "push", "head.load("),
    "link": Site(WHEEL, "push", "next.store("),
    "push": Site(WHEEL, "push", "compare_exchange_weak("),
    "seal": Site(PROTOCOL, "seal", "sealed.store("),
    "seal_fence": Site(PROTOCOL, "seal", "fence("),
    "look": Site(WHEEL, "is_occupied", "word.load("),
    "clear_bits": Site(WHEEL, "clear_bits", "fetch_and("),
    "flush": Site(WHEEL, "flush", "swap(flushed"),
    "walk": Assumed(RLX, "the advancer's walk over the links, which the swap has acquired"),
}


def schedule_against_flush() -> Protocol:
    """The bit, a fence, `sealed`; and `sealed`, a fence, the bits."""
    return protocol(
        "schedule against flush",
        (producer_of_list(NODE, "pushed1"), flusher),
        LIST_SITES,
        bad=lambda r: r.pushed1 and not r.taken1 or r.links == 0,
        needed=("read_fence", "seal_fence", "push", "flush"),
    )


def two_producers_against_flush() -> Protocol:
    """A producer that finds the bit of another one sets none."""
    return protocol(
        "two producers of a list against its flush",
        (producer_of_list(NODE, "pushed1"), producer_of_list(OTHER, "pushed2"), flusher),
        LIST_SITES,
        bad=lambda r: r.pushed1 and not r.taken1 or r.pushed2 and not r.taken2 or r.links == 0,
        needed=("read_fence", "seal_fence", "push", "flush"),
    )


def last_bucket_of_a_wheel() -> Protocol:
    """A producer loads a `last` that another producer has raised, and does not raise it."""

    def raiser(o: Sites) -> Steps:
        yield update("last", lambda old: max(old, 1), o.raise_last)

    def producer(o: Sites) -> Steps:
        if not (yield read("last", o.last_load)):
            yield update("last", lambda old: max(old, 1), o.raise_last)
        yield fence(o.read_fence)
        return {"pushed": 1 - (yield read("sealed", o.sealed))}

    def advancer(o: Sites) -> Steps:
        yield write("sealed", 1, o.seal)
        yield fence(o.seal_fence)
        return {"looks": (yield read("last", o.may_hold))}

    names = ("read_fence", "sealed", "seal", "seal_fence")
    return protocol(
        "the last bucket of a wheel",
        (raiser, producer, advancer),
        {name: LIST_SITES[name] for name in names}
        | {
            "last_load": Site(WHEEL, "mark", "last.load("),
            "raise_last": Site(WHEEL, "mark", "last.fetch_max("),
            "may_hold": Site(WHEEL, "may_hold_from", "last.load("),
        },
        bad=lambda r: r.pushed and not r.looks,
        needed=("read_fence", "seal_fence"),
    )


def next_round_of_a_bucket() -> Protocol:
    """A producer that means the next round has acquired the clearing of the bit."""

    def advancer(o: Sites) -> Steps:
        yield update("bit", lambda _: 0, o.clear_bits)
        yield swap("head", NEXT_ROUND, o.flush)
        yield write("flushed", 1, o.publish_flushed)

    def producer(o: Sites) -> Steps:
        wait_for((yield read("flushed", o.flushed)) == 1)
        if not (yield read("bit", o.mark_load)):
            yield update("bit", lambda _: 1, o.mark)
        seen = yield read("head", o.head_load)
        if seen == NEXT_ROUND:
            wait_for((yield cas("head", NEXT_ROUND, NODE, o.push)) == NEXT_ROUND)
        return {"pushed": int(seen == NEXT_ROUND)}

    names = ("mark_load", "mark", "head_load", "push", "clear_bits", "flush")
    return protocol(
        "the next round of a bucket",
        (advancer, producer),
        {name: LIST_SITES[name] for name in names}
        | {
            "publish_flushed": Site(PROTOCOL, "publish_flushed", "flushed.store("),
            "flushed": Site(PROTOCOL, "flushed", "flushed.load("),
        },
        bad=lambda r: True,
        bad_memory=lambda r, last: not r.pushed or not last["bit"],
        needed=("publish_flushed", "flushed"),
        bit=1,
    )


# ---- schedule against sleep ---------------------------------------------------------------------

ASLEEP = 9

SLEEP_SITES: dict[str, Place] = {
    "read_fence": READ_FENCE,
    "wake_up_to": Site(PROTOCOL, "fence_and_read", "wake_up_to.load("),
    "publish": Site(PROTOCOL, "publish_wake_at", "wake_up_to.store("),
    "sleep_fence": Site(PROTOCOL, "publish_wake_at", "fence("),
}


def schedule_against_sleep() -> Protocol:
    """The bit of a list, a fence, `wake_up_to`; and `wake_up_to`, a fence, the bits."""

    def producer(o: Sites) -> Steps:
        yield update("bit", lambda _: 1, o.mark)
        yield fence(o.read_fence)
        return {"wakes": int((yield read("wake_up_to", o.wake_up_to)) == ASLEEP)}

    def advancer(o: Sites) -> Steps:
        yield write("wake_up_to", ASLEEP, o.publish)
        yield fence(o.sleep_fence)
        return {"sees": (yield read("bit", o.look))}

    return protocol(
        "schedule against sleep",
        (producer, advancer),
        SLEEP_SITES | {name: LIST_SITES[name] for name in ("mark", "look")},
        bad=lambda r: not r.wakes and not r.sees,
        needed=("read_fence", "sleep_fence"),
    )


def inbox_against_sleep() -> Protocol:
    """The same for the inbox, whose next look takes the node."""

    def producer(o: Sites) -> Steps:
        yield write("link", 1, o.link)
        wait_for((yield cas("inbox", 0, 1, o.push_to_inbox)) == 0)
        yield fence(o.read_fence)
        return {"wakes": int((yield read("wake_up_to", o.wake_up_to)) == ASLEEP)}

    def advancer(o: Sites) -> Steps:
        yield write("wake_up_to", ASLEEP, o.publish)
        yield fence(o.sleep_fence)
        if not (yield read("inbox", o.has_inbox)):
            return {"sees": 0, "link": 1}
        wait_for((yield swap("inbox", 0, o.take_inbox)) == 1)
        return {"sees": 1, "link": (yield read("link", RLX))}

    return protocol(
        "the inbox against sleep",
        (producer, advancer),
        SLEEP_SITES
        | {
            "link": Site(INBOX, "push", "store(seen"),
            "push_to_inbox": Site(INBOX, "push", "compare_exchange_weak("),
            "has_inbox": Site(INBOX, "holds_any", "load("),
            "take_inbox": Site(INBOX, "take", "swap("),
        },
        bad=lambda r: not r.wakes and not r.sees or not r.link,
        needed=("read_fence", "sleep_fence", "push_to_inbox", "take_inbox"),
    )


def busy_node() -> Protocol:
    """A producer that exchanges a payload against an advancer that meets the busy node."""

    def producer(o: Sites) -> Steps:
        yield write("word", 1, o.fill)
        yield fence(o.read_fence)
        return {"cancels": (yield read("now", o.now))}

    def advancer(o: Sites) -> Steps:
        yield write("now", 1, o.publish_now)
        wait_for((yield read("word", o.word)) == 0)
        yield fence(o.pass_fence)
        return {"fires": (yield read("word", o.word))}

    return protocol(
        "a busy node against its flush",
        (producer, advancer),
        {
            "fill": Site(CELL, "fill", "word.store("),
            "read_fence": READ_FENCE,
            "now": Site(PROTOCOL, "fence_and_read", "now.load("),
            "publish_now": Site(PROTOCOL, "publish_now", "now.store("),
            "pass_fence": Site(PROTOCOL, "pass_fence", "fence("),
            "word": Site(CELL, "word", "word.load("),
        },
        bad=lambda r: not r.cancels and not r.fires,
        needed=("read_fence", "pass_fence"),
    )


def reused_node_against_sleep() -> Protocol:
    """A dead node is reused in place while the advancer, which has deferred it, goes to sleep."""

    def producer(o: Sites) -> Steps:
        yield write("word", 1, o.fill)
        yield fence(o.read_fence)
        return {"wakes": int((yield read("wake_up_to", o.wake_up_to)) == ASLEEP)}

    def advancer(o: Sites) -> Steps:
        yield write("wake_up_to", ASLEEP, o.publish)
        yield fence(o.sleep_fence)
        return {"sees": (yield read("word", o.word))}

    return protocol(
        "a reused node against sleep",
        (producer, advancer),
        SLEEP_SITES | {"fill": Site(CELL, "fill", "word.store("), "word": Site(CELL, "word", "word.load(")},
        bad=lambda r: not r.wakes and not r.sees,
        needed=("read_fence", "sleep_fence"),
    )


# ---- the end, and the dead ----------------------------------------------------------------------


def schedule_against_the_end() -> Protocol:
    """The node's word, a fence, `closed`; and `closed`, a fence, a walk over all nodes."""

    def producer(o: Sites) -> Steps:
        yield update("height", lambda old: max(old, 1), o.note_height)
        yield write("segment", 1, PLAIN)
        yield cas("place", 0, 1, o.fill_place)
        yield write("payload", 1, PLAIN)
        yield write("word", 1, o.fill)
        yield fence(o.read_fence)
        if not (yield read("closed", o.closed)):
            return {"accepted": 1, "took_back": 0}
        won = (yield cas("word", 1, 2, o.win)) == 1
        if won:
            yield read("payload", PLAIN)
        return {"accepted": 0, "took_back": int(won)}

    def end(o: Sites) -> Steps:
        yield write("closed", 1, o.close)
        yield fence(o.close_fence)
        if not (yield read("height", o.height)) or not (yield read("place", o.place)):
            return {"found": 0}
        yield read("segment", PLAIN)
        if (yield read("word", o.word)) != 1:
            return {"found": 0}
        won = (yield cas("word", 1, 3, o.win)) == 1
        if won:
            yield read("payload", PLAIN)
        return {"found": int(won)}

    table = "shard/memory/table.rs"
    return protocol(
        "schedule against the end",
        (producer, end),
        {
            "note_height": Site(table, "note_height", "fetch_max("),
            "fill_place": Site(table, "fill", "let (success, failure) ="),
            "fill": Site(CELL, "fill", "word.store("),
            "read_fence": READ_FENCE,
            "closed": Site(PROTOCOL, "is_closed", "closed.load("),
            "win": Site(CELL, "replace", "let (success, failure) ="),
            "close": Site(PROTOCOL, "close", "closed.store("),
            "close_fence": Site(PROTOCOL, "close", "fence("),
            "height": Site(table, "height", "height.load("),
            "place": Site(table, "get", "load("),
            "word": Site(CELL, "word", "word.load("),
        },
        bad=lambda r: (
            r.accepted + r.took_back == 0 and not r.found or r.accepted and not r.found or r.took_back and r.found
        ),
        needed=("read_fence", "close_fence", "fill_place", "place", "fill"),
    )


def dead_reports() -> Protocol:
    """`reported`, a fence, `sweep_at`; and `sweep_at`, a fence, `reported`: the limit falls from 9 to 1."""

    def producer(o: Sites) -> Steps:
        yield write("tally", 1, o.tally)
        reported = 1 + (yield update("reported", lambda old: old + 1, o.report))
        yield fence(o.report_fence)
        return {"asks": int(reported >= (yield read("sweep_at", o.sweep_at)))}

    def advancer(o: Sites) -> Steps:
        if (yield read("reported", o.check)):
            return {"asks_too": 1, "counted": (yield read("tally", o.tally))}
        yield write("sweep_at", 1, o.lower)
        yield fence(o.check_fence)
        return {"asks_too": int((yield read("reported", o.look)) >= 1), "counted": 1}

    return protocol(
        "reports of dead nodes",
        (producer, advancer),
        {
            "tally": Assumed(RLX, "the counters of a lane, `stats.rs`"),
            "report": Site(COUNTS, "report_dead", "reported.fetch_add("),
            "report_fence": Site(COUNTS, "report_dead", "fetch_add(more", 1),
            "sweep_at": Site(COUNTS, "report_dead", "sweep_at.load("),
            "check": Site(COUNTS, "check_dead", "let reported ="),
            "lower": Site(COUNTS, "check_dead", "sweep_at.store("),
            "check_fence": Site(COUNTS, "check_dead", "fence("),
            "look": Site(COUNTS, "check_dead", "is_reached(sweep_at,"),
        },
        bad=lambda r: not r.asks and not r.asks_too or not r.counted,
        needed=("report_fence", "check_fence", "report", "check"),
        sweep_at=9,
    )


def sweep_request_against_sleep() -> Protocol:
    """The request for a sweep, a fence, `wake_up_to`; and `wake_up_to`, a fence, the request."""

    def producer(o: Sites) -> Steps:
        yield write("dead", 1, RLX)
        yield swap("requested", 1, o.request)
        yield fence(o.request_fence)
        return {"wakes": int((yield read("wake_up_to", o.wake_up_to)) == ASLEEP)}

    def advancer(o: Sites) -> Steps:
        yield write("wake_up_to", ASLEEP, o.publish)
        yield fence(o.sleep_fence)
        if not (yield read("requested", o.is_requested)):
            return {"sees": 0, "dead": 1}
        yield swap("requested", 0, o.take_request)
        return {"sees": 1, "dead": (yield read("dead", RLX))}

    names = ("wake_up_to", "publish", "sleep_fence")
    return protocol(
        "a request for a sweep against sleep",
        (producer, advancer),
        {name: SLEEP_SITES[name] for name in names}
        | {
            "request": Site(COUNTS, "report_dead", "sweep_requested.swap("),
            "request_fence": Site(COUNTS, "report_dead", "sweep_requested.swap(", 1),
            "is_requested": Site(COUNTS, "is_sweep_requested", "sweep_requested.load("),
            "take_request": Site(COUNTS, "take_sweep_request", "sweep_requested.swap("),
        },
        bad=lambda r: not r.wakes and not r.sees or not r.dead,
        needed=("request_fence", "sleep_fence", "request", "take_request"),
    )


# ---- drivers ------------------------------------------------------------------------------------

REQUEST_SITES: dict[str, Place] = {
    "request": Site(NOTIFIER, "request", "swap(true"),
    "request_fence": Site(NOTIFIER, "request", "fence("),
    "is_requested": Site(NOTIFIER, "is_requested", "load("),
    "notify": PARKER_NOTIFY,
    "clear": PARKER_CLEAR,
}


def request_against_a_new_leader() -> Protocol:
    """`requested`, a fence, `leader`; and `leader`, a fence, `requested`: driver 1 takes the lead."""

    def producer(o: Sites) -> Steps:
        yield write("due", 1, RLX)
        yield swap("requested", 1, o.request)
        yield fence(o.request_fence)
        leader = yield read("leader", o.leader)
        yield swap(f"parker{leader}", 1, o.notify)

    def driver(o: Sites) -> Steps:
        yield swap("parker1", 0, o.clear)
        yield write("leader", 1, o.lead)
        yield fence(o.lead_fence)
        if not (yield read("requested", o.is_requested)):
            return {"visits": 0, "due": 1}
        yield swap("requested", 0, o.take_request)
        return {"visits": 1, "due": (yield read("due", RLX))}

    return protocol(
        "a request against a new leader",
        (producer, driver),
        REQUEST_SITES
        | {
            "leader": Site(NOTIFIER, "leader", "leader.load("),
            "lead": Site(NOTIFIER, "lead", "leader.store("),
            "lead_fence": Site(NOTIFIER, "lead", "fence("),
            "take_request": Site(NOTIFIER, "take_request", "swap(false"),
        },
        bad=lambda r: True,
        bad_memory=lambda r, last: not r.visits and not last.get("parker1", 0) or not r.due,
        needed=("request_fence", "lead_fence", "request", "take_request"),
    )


def request_against_a_visit() -> Protocol:
    """`requested`, a fence, `busy_since`; and `busy_since`, a fence, `requested`."""

    def producer(o: Sites) -> Steps:
        yield swap("requested", 1, o.request)
        yield fence(o.request_fence)
        return {"ensures": (yield read("busy_since", o.busy_since))}

    def leader(o: Sites) -> Steps:
        yield write("busy_since", 1, o.begin)
        yield fence(o.lead_fence)
        return {"ensures_too": (yield read("requested", o.is_requested))}

    names = ("request", "request_fence", "is_requested")
    return protocol(
        "a request against a visit",
        (producer, leader),
        {name: REQUEST_SITES[name] for name in names}
        | {
            "busy_since": Site(NOTIFIER, "busy_since", "busy_since.load("),
            "begin": Site(NOTIFIER, "lead", "busy_since.store("),
            "lead_fence": Site(NOTIFIER, "lead", "fence("),
        },
        bad=lambda r: not r.ensures and not r.ensures_too,
        needed=("request_fence", "lead_fence"),
    )


def request_against_the_watchdog() -> Protocol:
    """`requested`, a fence, `looks_at`; and `looks_at`, a fence, `requested`. The watchdog looks late: at 9."""

    def producer(o: Sites) -> Steps:
        yield swap("requested", 1, o.request)
        yield fence(o.request_fence)
        if (yield read("looks_at", o.looks_at)) == ASLEEP:
            yield swap("parker", 1, o.notify)

    def watchdog(o: Sites) -> Steps:
        yield swap("parker", 0, o.clear)
        yield write("looks_at", ASLEEP, o.announce)
        yield fence(o.announce_fence)
        return {"sees": (yield read("requested", o.is_requested))}

    return protocol(
        "a request against the watchdog's sleep",
        (producer, watchdog),
        REQUEST_SITES
        | {
            "looks_at": Site(NOTIFIER, "ensure_look", "looks_at.load("),
            "announce": Site(NOTIFIER, "announce_look", "looks_at.store("),
            "announce_fence": Site(NOTIFIER, "announce_look", "fence("),
        },
        bad=lambda r: not r.sees,
        bad_memory=lambda _, last: not last["parker"],
        needed=("request_fence", "announce_fence"),
    )


def parker() -> Protocol:
    """A notification before the clear is about something that the look finds; a later one stays."""

    def notifier(o: Sites) -> Steps:
        yield write("work", 1, RLX)
        yield swap("notified", 1, o.notify)

    def driver(o: Sites) -> Steps:
        yield swap("notified", 0, o.clear)
        sees = yield read("work", RLX)
        return {"sees": sees}

    return protocol(
        "the parker",
        (notifier, driver),
        {"notify": PARKER_NOTIFY, "clear": PARKER_CLEAR},
        bad=lambda r: not r.sees,
        bad_memory=lambda _, last: not last["notified"],
        needed=("notify", "clear"),
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

    slot = "timer/shard/advancer_slot.rs"
    return protocol(
        "a shutdown against user code",
        (worker, shutdown),
        {
            "note_executor": Site(slot, "note_executor", "store("),
            "swap": Site("fallible.rs", "swap", "place.swap("),
            "stopping": Site(slot, "put", "stopping.load("),
            "stop": Site(slot, "stop", "stopping.swap("),
            "is_executor": Site(slot, "take_from_executor", "is_executor.load("),
        },
        bad=lambda r: not r.notifies and not r.takes,
        needed=("swap", "stopping", "stop", "is_executor"),
    )


# ---- nodes --------------------------------------------------------------------------------------

NODE_SITES: dict[str, Place] = {
    "base": Site(CELL, "prepare", "base.store("),
    "fill": Site(CELL, "fill", "word.store("),
    "word": Site(CELL, "word", "word.load("),
    "win": Site(CELL, "replace", "let (success, failure) ="),
    "base_load": Site("shard/node/mod.rs", "deadline", "base.load("),
}
FREE, PENDING, CANCELLING, CANCELLED, EXTENDED, PENDING_2, RUNNING = range(7)


def schedules(o: Sites) -> Steps:
    yield write("base", 7, o.base)
    yield write("payload", 1, PLAIN)
    yield write("word", PENDING, o.fill)


def wins(o: Sites, word: int) -> Generator[Op, int, bool]:
    """Finds the timer pending, and gives it another word; whether no other thread has done that before."""
    wait_for((yield read("word", o.word)) == PENDING)
    return (yield cas("word", PENDING, word, o.win)) == PENDING


def fire_against_cancel() -> Protocol:
    """One timer is scheduled, fires and is cancelled: it has one outcome, and its payload one owner."""

    def fires(o: Sites) -> Steps:
        wait_for((yield read("word", o.word)) == PENDING)
        base = yield read("base", o.base_load)
        won = (yield cas("word", PENDING, FREE, o.win)) == PENDING
        if won:
            yield read("payload", PLAIN)
            yield write("payload", 0, PLAIN)
        return {"fired": int(won), "base": base}

    def cancels(o: Sites) -> Steps:
        won = yield from wins(o, CANCELLING)
        if won:
            yield read("payload", PLAIN)
            yield write("payload", 0, PLAIN)
        return {"cancelled": int(won)}

    return protocol(
        "a fire against a cancel",
        (schedules, fires, cancels),
        NODE_SITES,
        bad=lambda r: r.fired + r.cancelled != 1 or r.base != 7,
        needed=("fill", "word"),
    )


def extend_against_fire() -> Protocol:
    """An extension that has won holds: the fire of the shorter deadline fails."""

    def extends(o: Sites) -> Steps:
        wait_for((yield read("word", o.word)) == PENDING)
        base = yield read("base", o.extend_base)
        return {"extended": int((yield cas("word", PENDING, EXTENDED, o.win)) == PENDING), "base": base}

    def fires(o: Sites) -> Steps:
        word = yield read("word", o.word)
        wait_for(word in (PENDING, EXTENDED))
        won = (yield cas("word", word, FREE, o.win)) == word
        if won:
            yield read("payload", PLAIN)
        return {"fired_as": word if won else 0}

    return protocol(
        "an extension against a fire",
        (schedules, extends, fires),
        {name: NODE_SITES[name] for name in ("base", "fill", "word", "win")}
        | {"extend_base": Site("shard/node/mod.rs", "extend", "base.load(")},
        bad=lambda r: r.extended and r.fired_as == PENDING or r.extended and r.base != 7,
        needed=("fill", "word"),
    )


def move_in_vain_against_cancel() -> Protocol:
    """A move takes the payload, has no memory for another node and puts it back: the word is then as it was before."""

    def moves(o: Sites) -> Steps:
        won = yield from wins(o, RUNNING)
        if won:
            yield read("payload", PLAIN)
            yield write("payload", 2, PLAIN)
            yield cas("word", RUNNING, PENDING, o.fill_again)
        return {"moved": int(won)}

    def cancels(o: Sites) -> Steps:
        won = yield from wins(o, CANCELLING)
        return {"cancelled": int(won), "payload": (yield read("payload", PLAIN)) if won else 0}

    return protocol(
        "a move in vain against a cancel",
        (schedules, moves, cancels),
        {name: NODE_SITES[name] for name in ("base", "fill", "word", "win")}
        | {"fill_again": Site(CELL, "fill_again", "let (success, failure) =")},
        bad=lambda r: not r.moved and not r.cancelled or r.cancelled and not r.payload,
        needed=("fill", "win", "fill_again"),
    )


BITS_SITES: dict[str, Place] = {
    "give": Site("shard/memory/free_bits.rs", "set", "words[word].fetch_or("),
    "give_summary": Site("shard/memory/free_bits.rs", "set", "summary[word / WORD_NODES].fetch_or("),
    "take_summary": Site("shard/memory/free_bits.rs", "take", "fetch_and("),
    "take": Site("shard/memory/free_bits.rs", "take", "swap(0"),
}


def reuse_against_an_old_key() -> Protocol:
    """A node fires, is freed and holds the next timer, while a thread swaps its word with an old key."""

    def fires(o: Sites) -> Steps:
        wait_for((yield cas("word", PENDING, FREE, o.win)) == PENDING)
        yield read("payload", PLAIN)
        yield update("bits", lambda old: old | 1, o.give)

    def reuses(o: Sites) -> Steps:
        wait_for((yield swap("bits", 0, o.take)) == 1)
        yield write("base", 8, o.base)
        yield write("payload", 2, PLAIN)
        yield write("word", PENDING_2, o.fill)

    def cancels(o: Sites) -> Steps:
        word = yield read("word", o.word)
        wait_for(word == PENDING)
        base = yield read("base", o.base_load)
        won = (yield cas("word", PENDING, CANCELLING, o.win)) == PENDING
        if won:
            yield read("payload", PLAIN)
        return {"base": base if won else 7}

    return protocol(
        "reuse against an old key",
        (fires, reuses, cancels),
        NODE_SITES | {name: BITS_SITES[name] for name in ("give", "take")},
        bad=lambda r: r.base != 7,
        needed=("give", "take"),
        word=PENDING,
        base=7,
    )


def reuse_after_a_cancel() -> Protocol:
    """The canceller takes the payload out, the advancer frees the node, a producer fills it again."""

    def cancels(o: Sites) -> Steps:
        wait_for((yield cas("word", PENDING, CANCELLING, o.win)) == PENDING)
        yield read("payload", PLAIN)
        yield write("word", CANCELLED, o.cancelled)

    def frees(o: Sites) -> Steps:
        wait_for((yield read("word", o.word)) == CANCELLED)
        wait_for((yield cas("word", CANCELLED, FREE, o.win)) == CANCELLED)
        yield update("bits", lambda old: old | 1, o.give)

    def reuses(o: Sites) -> Steps:
        wait_for((yield swap("bits", 0, o.take)) == 1)
        free = yield read("word", o.peek)
        yield write("payload", 2, PLAIN)
        yield write("word", PENDING_2, o.fill)
        return {"free": int(free == FREE)}

    return protocol(
        "reuse after a cancel",
        (cancels, frees, reuses),
        {name: NODE_SITES[name] for name in ("fill", "word", "win")}
        | {name: BITS_SITES[name] for name in ("give", "take")}
        | {"cancelled": Site(CELL, "cancelled", "word.store("), "peek": Site(CELL, "peek", "word.load(")},
        bad=lambda r: not r.free,
        needed=("cancelled", "give", "take"),
        word=PENDING,
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
        BITS_SITES,
        bad=lambda _: True,
        bad_memory=lambda _, last: last["word"] == 1 and last["summary"] == 0,
        needed=("give_summary", "take_summary"),
    )


def mark_of_an_empty_segment() -> Protocol:
    """A segment that two threads have completed, which the advancer took for one in use, and whose mark is clear."""
    file = "shard/memory/slab/retire.rs"

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
            "count": Site("shard/memory/free_bits.rs", "give", "count.fetch_add("),
            "mark": Site(file, "mark_empty", "fetch_or("),
            "clear": Site(file, "take_if_empty", "fetch_and("),
            "look": Site("shard/memory/free_bits.rs", "count", "count.load("),
        },
        bad=lambda r: r.seen != 2,
        bad_memory=lambda _, last: last["mark"] == 0,
        needed=("mark", "clear"),
        mark=1,
    )


def thread_number() -> Protocol:
    """A thread ends, another one takes a further number, and a third has the first one's lane."""
    file = "shard/shared/lanes/thread_number.rs"

    def ends(o: Sites) -> Steps:
        yield write("lane", 1, PLAIN)
        yield update("taken", lambda old: old & ~1, o.give_back)

    def other(o: Sites) -> Steps:
        wait_for((yield update("taken", lambda old: old | 2, o.take)) == 0)

    def takes(o: Sites) -> Steps:
        wait_for(not (yield update("taken", lambda old: old | 1 if not old & 1 else None, o.take)) & 1)
        yield read("lane", PLAIN)

    return protocol(
        "a thread's number",
        (ends, other, takes),
        {"give_back": Site(file, "drop", "fetch_and("), "take": Site(file, "take", "fetch_update(")},
        bad=lambda _: False,
        needed=("give_back", "take"),
        taken=1,
    )


def call_against_a_revocation() -> Protocol:
    """`busy`, a barrier, `revoked`; and `revoked`, a barrier, `busy`."""
    file = "shard/shared/lanes/mod.rs"

    def thread(o: Sites) -> Steps:
        yield write("busy", 1, o.busy)
        yield fence(o.thread_barrier)
        if (yield read("revoked", o.revoked)):
            yield write("busy", 0, o.leave)
            return {}
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
            "busy": Site(file, "enter", "busy.store(true"),
            "thread_barrier": Assumed(SC, "what `membarrier` makes of the thread's compiler fence"),
            "revoked": Site(file, "enter", "revoked.load("),
            "leave": Site(file, "drop", "busy.store("),
            "advancer_barrier": Assumed(SC, "`membarrier`"),
            "is_busy": Site(file, "take_nodes", "busy.load("),
            "revoke": Site(file, "revoke", "revoked.store(true"),
            "give_back": Site(file, "revoke", "revoked.store(false"),
        },
        bad=lambda _: False,
        needed=("thread_barrier", "advancer_barrier", "leave", "is_busy", "revoked", "give_back"),
    )


def call_in_vain_against_a_revocation() -> Protocol:
    """A call, and a second one of the same thread that finds the lane revoked.

    The barrier falls into the first call: the advancer sees that call's `busy`, or a later one. So no fence is left
    that orders what the call has written.
    """
    file = "shard/shared/lanes/mod.rs"
    unused, in_call, left, left_in_vain = range(4)

    def thread(o: Sites) -> Steps:
        yield write("busy", in_call, o.busy)
        yield write("local", 1, PLAIN)
        yield write("busy", left, o.leave)
        yield write("busy", in_call, o.busy)
        yield write("busy", left_in_vain, o.leave_in_vain)

    def advancer(o: Sites) -> Steps:
        busy = yield read("busy", o.is_busy)
        wait_for(busy != unused)
        if busy in (left, left_in_vain):
            yield write("local", 2, PLAIN)

    sites = call_against_a_revocation().sites
    return protocol(
        "a call in vain against a revocation",
        (thread, advancer),
        {site: sites[site] for site in ("busy", "leave", "is_busy")}
        | {"leave_in_vain": Weakest(file, "busy.store(false")},
        bad=lambda _: False,
        needed=("leave", "leave_in_vain", "is_busy"),
    )


# ---- wakers -------------------------------------------------------------------------------------


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

    table = "shard/memory/table.rs"
    return protocol(
        "the advancer's waker",
        (advancer, producer),
        {
            "replace": Site(table, "replace", "places[index].swap("),
            "begin_sleep": Site(WAKER, "begin_sleep", "sleep.store("),
            "sleep": Site(WAKER, "pending_wake", "sleep.load("),
            "get": Site(table, "get", "load("),
        },
        bad=lambda r: r.is_old,
        needed=("begin_sleep", "sleep", "replace", "get"),
    )


def completed_wake() -> Protocol:
    """A producer leaves the wake to another one whose wake for that sleep has returned."""

    def advancer(o: Sites) -> Steps:
        yield write("sleep", 1, o.begin_sleep)
        yield fence(o.sleep_fence)
        wait_for((yield read("unparked", o.unpark)) == 1)
        yield write("sleep", 2, o.begin_sleep)
        yield write("wake_up_to", ASLEEP, o.publish)
        yield fence(o.sleep_fence)
        return {"sees": (yield read("bit", o.look))}

    def waking(o: Sites) -> Steps:
        wait_for((yield read("sleep", o.sleep)) == 1)
        yield write("unparked", 1, o.park)
        yield update("woken", lambda old: max(old, 1), o.note_woken)

    def producer(o: Sites) -> Steps:
        yield update("bit", lambda _: 1, o.mark)
        yield fence(o.read_fence)
        if (yield read("wake_up_to", o.wake_up_to)) != ASLEEP:
            return {"wakes": 0}
        sleep = yield read("sleep", o.sleep)
        return {"wakes": int((yield read("woken", o.woken)) < sleep)}

    return protocol(
        "a wake that another producer has completed",
        (advancer, waking, producer),
        SLEEP_SITES
        | {name: LIST_SITES[name] for name in ("mark", "look")}
        | {
            "begin_sleep": Site(WAKER, "begin_sleep", "sleep.store("),
            "sleep": Site(WAKER, "pending_wake", "sleep.load("),
            "woken": Site(WAKER, "pending_wake", "woken.load("),
            "note_woken": Site(WAKER, "note_woken", "fetch_max("),
            "park": Assumed(REL, "an unpark releases"),
            "unpark": Assumed(ACQ, "the park that it ends acquires"),
        },
        bad=lambda r: not r.wakes and not r.sees,
        needed=("read_fence", "sleep_fence"),
        wake_up_to=ASLEEP,
    )


WAITERS = "delay_queue/waiters.rs"
WAITERS_SITES: dict[str, Place] = {
    "lock": Assumed(ACQ, "a mutex is locked"),
    "unlock": Assumed(REL, "a mutex is unlocked"),
    "register": Site(WAITERS, "register", "is_awaited.swap("),
    "wake": Site(WAITERS, "wake_all", "is_awaited.swap("),
}


STACK_SITES: dict[str, Place] = {
    "push": Site("fallible/stack.rs", "push", "let (success, failure) ="),
    "take_all": Site("fallible/stack.rs", "take_all", "head.swap("),
}
END_SITES: dict[str, Place] = {
    "note_end": Site("delay_queue/entry.rs", "note_end", "has_ended.store("),
    "has_ended": Site("delay_queue/entry.rs", "has_ended", "has_ended.load("),
}


def registers(o: Sites) -> Steps:
    wait_for((yield cas("lock", 0, 1, o.lock)) == 0)
    yield write("waker", 1, PLAIN)
    yield write("lock", 0, o.unlock)
    yield swap("is_awaited", 1, o.register)


def wakes(o: Sites) -> Generator[Op, int, int]:
    if not (yield swap("is_awaited", 0, o.wake)):
        return 0
    wait_for((yield cas("lock", 0, 1, o.lock)) == 0)
    waker = yield read("waker", PLAIN)
    yield write("lock", 0, o.unlock)
    return waker


def value_against_a_wait() -> Protocol:
    """A consumer registers and looks again; a shard's thread pushes and wakes."""

    def consumer(o: Sites) -> Steps:
        yield from registers(o)
        found = yield swap("values", 0, o.take_all)
        if found:
            yield read("value", PLAIN)
        return {"found": found}

    def shard(o: Sites) -> Steps:
        yield write("value", 1, PLAIN)
        yield update("values", lambda _: 1, o.push)
        return {"wakes": (yield from wakes(o))}

    return protocol(
        "a value against a consumer's wait",
        (consumer, shard),
        WAITERS_SITES | STACK_SITES,
        bad=lambda r: not r.found and not r.wakes,
        needed=("push", "take_all"),
    )


def end_after_the_last_value() -> Protocol:
    """A consumer that sees the end finds the values that came before it."""

    def consumer(o: Sites) -> Steps:
        wait_for((yield read("has_ended", o.has_ended)) == 1)
        return {"found": (yield swap("values", 0, o.take_all))}

    def shard(o: Sites) -> Steps:
        yield update("values", lambda _: 1, o.push)
        yield write("has_ended", 1, o.note_end)

    return protocol(
        "the end after the last value",
        (consumer, shard),
        STACK_SITES | END_SITES,
        bad=lambda r: not r.found,
    )


def drop_of_a_queue() -> Protocol:
    """The queue is dropped while a value is pushed: the flag, then a take; and the push, then the flag."""

    def drops(o: Sites) -> Steps:
        yield write("is_dropped", 1, o.note_drop)
        return {"drop_takes": (yield swap("values", 0, o.take_all))}

    def shard(o: Sites) -> Steps:
        yield update("values", lambda _: 1, o.push)
        if not (yield read("is_dropped", o.is_dropped)):
            return {"takes": 0}
        return {"takes": (yield swap("values", 0, o.take_all))}

    return protocol(
        "the drop of a delay queue",
        (drops, shard),
        STACK_SITES
        | {
            "note_drop": Site("delay_queue/entry.rs", "note_drop", "is_dropped.store("),
            "is_dropped": Site("delay_queue/entry.rs", "push", "is_dropped.load("),
        },
        bad=lambda r: r.drop_takes + r.takes != 1,
        needed=("push", "take_all"),
    )


def end_against_a_wait() -> Protocol:
    """The same where the timer ends: the flag first, then the wake."""

    def consumer(o: Sites) -> Steps:
        yield from registers(o)
        return {"found": (yield read("has_ended", o.has_ended))}

    def shard(o: Sites) -> Steps:
        yield write("has_ended", 1, o.note_end)
        return {"wakes": (yield from wakes(o))}

    return protocol(
        "the end against a consumer's wait",
        (consumer, shard),
        WAITERS_SITES | END_SITES,
        bad=lambda r: not r.found and not r.wakes,
        needed=("register", "wake"),
    )


PAIRS = (
    schedule_against_flush,
    schedule_against_sleep,
    schedule_against_the_end,
    dead_reports,
    request_against_a_new_leader,
    request_against_a_visit,
    request_against_the_watchdog,
)
OTHERS = (
    two_producers_against_flush, last_bucket_of_a_wheel, next_round_of_a_bucket, inbox_against_sleep, busy_node,
    reused_node_against_sleep, sweep_request_against_sleep, parker,
    shutdown_against_user_code, fire_against_cancel, extend_against_fire, move_in_vain_against_cancel,
    reuse_against_an_old_key, reuse_after_a_cancel, free_bits, mark_of_an_empty_segment, thread_number, call_against_a_revocation,
    call_in_vain_against_a_revocation, registered_waker, completed_wake,
    value_against_a_wait, end_against_a_wait,
    end_after_the_last_value, drop_of_a_queue,
)  # fmt: skip
ALL = PAIRS + OTHERS
