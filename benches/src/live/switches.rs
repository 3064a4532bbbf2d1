//! How often the threads of this process woke.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::machine::field;

/// Voluntary context switches by thread: a thread that goes to sleep is woken once.
pub(super) type Switches = BTreeMap<String, u64>;

/// Returns the voluntary context switches of each other thread. On Linux only.
pub(super) fn switches() -> Option<Switches> {
    let me = fs::read_link("/proc/thread-self").ok()?;
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten().map(|thread| thread.path());
    // A thread may end before its file is read.
    let count = |path: PathBuf| {
        let status = fs::read_to_string(path.join("status")).ok()?;
        Some((path.display().to_string(), field(&status, "voluntary_ctxt_switches")?.parse().ok()?))
    };
    Some(threads.filter(|thread| thread.file_name() != me.file_name()).filter_map(count).collect())
}

/// Returns how often threads woke. A thread that started or ended was awake at least once.
pub(super) fn wakes_between(before: &Switches, after: &Switches) -> u64 {
    let ended = before.keys().filter(|thread| !after.contains_key(*thread)).count() as u64;
    let ran = |(thread, now): (_, &u64)| before.get(thread).map_or(1.max(*now), |was| now - was);
    ended + after.iter().map(ran).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_start_or_end_have_run() {
        let switches = |threads: &[(&str, u64)]| threads.iter().map(|&(id, n)| (id.to_owned(), n)).collect();
        let before = switches(&[("1", 10), ("2", 5), ("3", 1)]);
        assert_eq!(wakes_between(&before, &before), 0);
        assert_eq!(wakes_between(&before, &switches(&[("1", 12), ("2", 5), ("4", 0)])), 2 + 1 + 1);
    }
}
