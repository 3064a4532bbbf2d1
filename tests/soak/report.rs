//! What is printed, a line every ten seconds and a table at the end; and what must hold.

use std::fmt::Display;
use std::fs;
use std::time::{Duration, Instant};

use shardwheel::Stats;

use crate::books::Books;
use crate::ending::Ended;
use crate::scene::{BY_ITSELF, Scene, WITH_EXECUTOR};

const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// The lines during the soak.
pub(crate) struct Lines {
    begin: Instant,
    next: Duration,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self { begin: Instant::now(), next: BETWEEN_LINES }
    }

    /// Prints a line if it is due.
    pub(crate) fn print(&mut self, scene: &Scene) {
        if self.begin.elapsed() < self.next {
            return;
        }
        print!("{:>5} s", self.next.as_secs());
        for which in [BY_ITSELF, WITH_EXECUTOR] {
            let stats = scene.timer(which).stats();
            print!(
                " | {} scheduled, {} fired, {} cancelled, {} pending, {} panics, p99 {:.1?}, behind {:.1?}",
                stats.scheduled,
                stats.fired,
                stats.cancelled,
                stats.pending,
                stats.panics,
                stats.lateness.p99(),
                stats.backlog
            );
        }
        println!(" | {} MiB", mebibytes(resident()));
        self.next += BETWEEN_LINES;
    }
}

/// The greatest resident memory, in the first half and in the second.
#[derive(Default)]
pub(crate) struct Memory {
    most: [u64; 2],
    looks: u32,
}

impl Memory {
    pub(crate) fn look(&mut self, second_half: bool) {
        let most = &mut self.most[usize::from(second_half)];
        *most = resident().max(*most);
        self.looks += 1;
    }

    /// Whether memory has not grown, except for bursts that coincide. A short soak proves nothing.
    fn is_bounded(&self) -> bool {
        const ENOUGH_LOOKS: u32 = 400;
        let [first, second] = self.most;
        self.looks < ENOUGH_LOOKS || second <= first + first / 4
    }
}

/// Resident memory in bytes; 0 where the system does not report it.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1_024
}

fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

/// Prints the table, and panics if a check fails.
pub(crate) fn conclude(scene: &Scene, ended: &Ended, memory: &Memory) {
    println!("\n{:<44}{:>16}{:>16}", "", "by itself", "with executor");
    rows_of_stats(&ended.stats);
    rows_of_books(scene);
    rows_of_lateness(&ended.stats, scene);
    let [first, second] = memory.most.map(mebibytes);
    println!("{:<44}{first:>16}{second:>16}\n", "most memory, MiB: first half, second half");
    let mut broken = check("memory does not grow over the second half", memory.is_bounded());
    for which in [BY_ITSELF, WITH_EXECUTOR] {
        println!("{}:", ["by itself", "with executor"][which]);
        broken.extend(Identities { ended, books: scene.books(which), which }.check());
        broken.extend_from_slice(&scene.books(which).complaints());
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// The timers' statistics.
fn rows_of_stats(of: &[Stats; 2]) {
    let stats = |name: &str, figure: &dyn Fn(&Stats) -> u64| row(name, of.each_ref().map(figure));
    stats("scheduled", &|stats| stats.scheduled);
    stats("recurred", &|stats| stats.recurred);
    stats("fired", &|stats| stats.fired);
    stats("cancelled", &|stats| stats.cancelled);
    stats("handed back", &|stats| stats.handed_back);
    stats("pending", &|stats| stats.pending as u64);
    stats("extended", &|stats| stats.extended);
    stats("cascaded", &|stats| stats.cascaded);
    stats("swept", &|stats| stats.swept);
    stats("panics", &|stats| stats.panics);
    stats("nodes that there is memory for", &|stats| stats.node_capacity as u64);
}

/// The counts of the threads and callbacks.
fn rows_of_books(scene: &Scene) {
    let books = |name: &str, figure: &dyn Fn(&Books) -> u64| {
        row(name, [BY_ITSELF, WITH_EXECUTOR].map(|which| figure(scene.books(which))));
    };
    books("callbacks called", &|books| books.runs.get());
    books("jobs dropped instead", &|books| books.unrun.get());
    books("slow callbacks", &|books| books.slow.get());
    books("timers refused", &|books| books.refused.get());
    books("cancelled while the callback was out", &|books| books.stopped.get());
    books("moved", &|books| books.moved.get());
    books("stale keys tried", &|books| books.stale.get());
    books("futures polled", &|books| books.polls.get());
    books("futures ready", &|books| books.ready.get());
    books("wakers woken", &|books| books.wakes.get());
}

fn rows_of_lateness(of: &[Stats; 2], scene: &Scene) {
    let late = |name: &str, figure: &dyn Fn(&Stats) -> Duration| {
        row(name, of.each_ref().map(|stats| format!("{:.3?}", figure(stats))));
    };
    let latest = |which: usize| Duration::from_nanos(scene.books(which).latest.get());
    late("lateness p50", &|stats| stats.lateness.p50());
    late("lateness p99", &|stats| stats.lateness.p99());
    late("lateness p99.9", &|stats| stats.lateness.p999());
    late("lateness max", &|stats| stats.lateness.max());
    row(
        "  of those that fire once",
        [BY_ITSELF, WITH_EXECUTOR].map(|which| format!("{:.3?}", latest(which))),
    );
    late("longest callback", &|stats| stats.longest_callback);
}

fn row(name: &str, [left, right]: [impl Display; 2]) {
    println!("{name:<44}{left:>16}{right:>16}");
}

/// Prints whether it holds; returns its name if it does not.
fn check(name: &str, holds: bool) -> Vec<String> {
    println!("{:<8}{name}", if holds { "holds" } else { "BROKEN" });
    if holds { Vec::new() } else { vec![name.into()] }
}

/// What must hold for one timer.
struct Identities<'a> {
    ended: &'a Ended,
    books: &'a Books,
    which: usize,
}

impl Identities<'_> {
    fn check(&self) -> Vec<String> {
        let (stats, books) = (&self.ended.stats[self.which], self.books);
        let ends = stats.fired + stats.cancelled + stats.handed_back + stats.pending as u64;
        let stopped = books.stopped.get();
        let fired = books.runs.get() + books.unrun.get() + books.wakes.get() - stopped;
        // A job that was cancelled while it waited for its executor has not called its callback.
        let unbegun = if self.which == WITH_EXECUTOR { stopped } else { 0 };
        let unfired = self.ended.unfired[self.which];
        let list = [
            ("scheduled + recurred = fired + cancelled + handed back + pending", {
                stats.scheduled + stats.recurred == ends
            }),
            ("nothing is pending", stats.pending == 0),
            ("fired = callbacks called + jobs dropped + wakers woken - stopped after they began", {
                (fired..=fired + unbegun).contains(&stats.fired)
            }),
            ("handed back = callbacks + wakers", stats.handed_back == unfired + books.last_wakes.get()),
            ("each callback handed back is one that was pending", books.handed_back.get() == unfired),
            ("panics counted = made = told", {
                stats.panics == books.panics.get() && books.told.get() == stats.panics
            }),
            ("each account is closed, with one outcome", books.open() == 0),
            ("each payload is dropped once", books.drops.get() == books.opened.get()),
        ];
        list.into_iter().flat_map(|(name, holds)| check(name, holds)).collect()
    }
}
