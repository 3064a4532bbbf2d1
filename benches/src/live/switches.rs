//! How often the threads of this process ran.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::machine::field;

/// All context switches: a thread that sleeps has none.
pub(super) const SWITCHES: &[&str] = &["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"];

/// A thread that goes to sleep is woken once.
pub(super) const WAKE_UPS: &[&str] = &["voluntary_ctxt_switches"];

pub(super) type Switches = BTreeMap<String, u64>;

/// Returns the context switches of each other thread, of these kinds. On Linux only.
pub(super) fn switches(kinds: &[&str]) -> Option<Switches> {
    let me = fs::read_link("/proc/thread-self").ok()?;
    let threads = fs::read_dir("/proc/self/task").ok()?.flatten().map(|thread| thread.path());
    // A thread may end before its file is read.
    let count = |path: PathBuf| {
        let status = fs::read_to_string(path.join("status")).ok()?;
        let of = |name: &&str| field(&status, name)?.parse::<u64>().ok();
        Some((path.display().to_string(), kinds.iter().map(of).sum::<Option<_>>()?))
    };
    Some(threads.filter(|thread| thread.file_name() != me.file_name()).filter_map(count).collect())
}

/// Returns how often threads ran. A thread that started or ended ran at least once.
pub(super) fn runs_between(before: &Switches, after: &Switches) -> u64 {
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
        assert_eq!(runs_between(&before, &before), 0);
        assert_eq!(runs_between(&before, &switches(&[("1", 12), ("2", 5), ("4", 0)])), 2 + 1 + 1);
    }
}
