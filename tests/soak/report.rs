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
    assert!(memory.is_bounded(), "memory grows over the second half");
    let mut broken = Vec::new();
    for which in [BY_ITSELF, WITH_EXECUTOR] {
        println!("{}: {:#?}", ["by itself", "with executor"][which], ended.stats[which]);
        broken.extend_from_slice(&scene.books(which).complaints());
        broken.extend(broken_identities(ended, scene.books(which), which));
    }
    assert!(broken.is_empty(), "{broken:#?}");
}

/// What does not hold for a timer, and has to.
fn broken_identities(ended: &Ended, books: &Books, which: usize) -> impl Iterator<Item = String> {
    let (stats, unfired) = (&ended.stats[which], ended.unfired[which]);
    let ends = stats.fired + stats.cancelled + stats.handed_back + stats.pending as u64;
    let stopped = books.stopped.get();
    let fired = books.runs.get() + books.unrun.get() + books.wakes.get() - stopped;
    // A job that was cancelled while it waited for its executor has not called its callback.
    let unbegun = if which == WITH_EXECUTOR { stopped } else { 0 };
    let list = [
        (
            "scheduled + recurred = fired + cancelled + handed back + pending",
            stats.scheduled + stats.recurred == ends,
        ),
        ("nothing is pending", stats.pending == 0),
        (
            "fired = callbacks called + jobs dropped + wakers woken - stopped after they began",
            (fired..=fired + unbegun).contains(&(stats.fired as usize)),
        ),
        ("handed back = callbacks + wakers", stats.handed_back as usize == unfired + books.last_wakes.get()),
        ("each callback handed back is one that was pending", books.handed_back.get() == unfired),
        ("panics counted = made", stats.panics as usize == books.panics.get()),
        ("panics counted = told", stats.panics as usize == books.told.get()),
        ("each account is closed, with one outcome", books.open() == 0),
        ("each payload is dropped once", books.drops.get() == books.opened.get()),
    ];
    let broken = list.into_iter().filter(|(_, holds)| !holds);
    broken.map(move |(name, _)| format!("timer {which}: {name}"))
}
