//! How often the threads of this process were taken off a processor, of their own will or not: a thread that
//! sleeps all the time never is. Only Linux says so.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;

const OF_OWN_WILL: &str = "voluntary_ctxt_switches:";
const NOT: &str = "nonvoluntary_ctxt_switches:";

/// The context switches of each thread, by its name in `/proc`.
#[derive(Debug)]
pub(crate) struct Switches(BTreeMap<OsString, u64>);

impl Switches {
    /// Those of every thread but the one that asks; `None` where the system does not say.
    pub(crate) fn of_other_threads() -> Option<Self> {
        let me = fs::read_link("/proc/thread-self").ok()?;
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir("/proc/self/task").ok()? {
            let thread = thread.ok()?;
            // A thread may end before its file is read.
            let Ok(status) = fs::read_to_string(thread.path().join("status")) else { continue };
            if Some(thread.file_name().as_os_str()) != me.file_name() {
                threads.insert(thread.file_name(), count(&status)?);
            }
        }
        Some(Self(threads))
    }

    /// How often threads have run since `before`; one that has begun or ended since then has run at least once.
    pub(crate) fn since(&self, before: &Self) -> u64 {
        let ended = before.0.keys().filter(|thread| !self.0.contains_key(*thread)).count() as u64;
        let ran = |(thread, switches): (_, &u64)| match before.0.get(thread) {
            Some(before) => switches.saturating_sub(*before),
            None => 1.max(*switches),
        };
        ended + self.0.iter().map(ran).sum::<u64>()
    }
}

fn count(status: &str) -> Option<u64> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok();
    Some(field(OF_OWN_WILL)? + field(NOT)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(threads: &[(&str, u64)]) -> Switches {
        Switches(threads.iter().map(|&(thread, switches)| (thread.into(), switches)).collect())
    }

    #[test]
    fn both_kinds_count() {
        let status = "Name:\tlive\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!((count(status), count("Name:\tlive\n")), (Some(9), None));
    }

    #[test]
    fn threads_that_begin_or_end_have_run() {
        let before = switches(&[("1", 10), ("2", 5), ("3", 1)]);
        assert_eq!(before.since(&before), 0);
        assert_eq!(switches(&[("1", 12), ("2", 5), ("4", 0)]).since(&before), 2 + 1 + 1);
    }
}
