//! What must hold at the end, and the figures that are printed with it.

use crate::books::Books;
use crate::ending::Ended;
use crate::scene::{BY_ITSELF, Scene, WITH_EXECUTOR};
use crate::support;

/// The greatest resident memory, in the first half and in the second.
#[derive(Default)]
pub(crate) struct Memory {
    most: [usize; 2],
    looks: u32,
}

impl Memory {
    pub(crate) fn look(&mut self, second_half: bool) {
        let most = &mut self.most[usize::from(second_half)];
        let resident = if cfg!(target_os = "linux") { support::resident() } else { 0 };
        *most = resident.max(*most);
        self.looks += 1;
    }

    /// Whether memory has not grown, except for bursts that coincide. A short soak proves nothing.
    fn is_bounded(&self) -> bool {
        const ENOUGH_LOOKS: u32 = 400;
        let [first, second] = self.most;
        self.looks < ENOUGH_LOOKS || second <= first + first / 4
    }
}

/// Prints what was counted, and panics if a check fails.
pub(crate) fn conclude(scene: &Scene, ended: &Ended, memory: &Memory) {
    let [first, second] = memory.most.map(|bytes| bytes >> 20);
    println!("most memory: {first} MiB in the first half, {second} MiB in the second");
    let mut broken = check("memory does not grow over the second half", memory.is_bounded());
    for which in [BY_ITSELF, WITH_EXECUTOR] {
        println!("{}: {:#?}", ["by itself", "with executor"][which], ended.stats[which]);
        broken.extend(Identities { ended, books: scene.books(which), which }.check());
        broken.extend_from_slice(&scene.books(which).complaints());
    }
    assert!(broken.is_empty(), "{broken:#?}");
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
