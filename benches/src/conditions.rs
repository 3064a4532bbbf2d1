//! How busy the machine was with other things while the figures were taken.
//!
//! Times are those of the clock on the wall, so another process on the same core, or a hypervisor that gives
//! the core to someone else, makes every figure worse. The report says how much of that there was.

use std::fs;

/// Where `/proc/stat` has idle time, time spent waiting for a disk, and time taken by the hypervisor, among
/// the fields that follow the word `cpu`; guests' time follows and is part of the rest already.
const IDLE: usize = 3;
const WAITING: usize = 4;
const STOLEN: usize = 7;
const COUNTED: usize = 8;

/// Where `/proc/self/stat` has this process's times, and those of the children it has waited for, among the
/// fields that follow the program's name.
const OWN: std::ops::Range<usize> = 11..15;

/// Shares above this one are too much for the figures to be believed.
const QUIET: f64 = 0.05;

/// Processor time since the machine started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    total: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Usage {
    /// What has been used by now; `None` where the system does not say.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(all: &str, own: &str) -> Option<Self> {
        let fields = numbers(all.lines().next()?.strip_prefix("cpu")?)?;
        let counted = fields.get(..COUNTED)?;
        let total = counted.iter().sum::<u64>();
        let own = own.rsplit_once(')')?.1.split_whitespace().collect::<Vec<_>>();
        Some(Self {
            total,
            busy: total - counted[IDLE] - counted[WAITING] - counted[STOLEN],
            stolen: counted[STOLEN],
            own: own.get(OWN)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum(),
        })
    }

    /// A paragraph about what others used since then.
    #[must_use]
    pub fn describe_since(self) -> String {
        match Self::now() {
            Some(now) if now.total > self.total => now.describe(self),
            _ => String::new(),
        }
    }

    fn describe(self, since: Self) -> String {
        let share = |ticks: u64| ticks as f64 / (self.total - since.total) as f64;
        let others = share((self.busy - since.busy).saturating_sub(self.own - since.own));
        let stolen = share(self.stolen - since.stolen);
        let verdict =
            if others.max(stolen) > QUIET { "**too much for the figures to be believed**" } else { "quiet" };
        format!(
            "While this ran, other processes used {:.1} % of the processors and the hypervisor took {:.1} %: {verdict}.\n\n",
            others * 100.0,
            stolen * 100.0
        )
    }
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_time_between() {
        let own = |ticks| format!("1 (a name) R 1 1 1 1 1 1 1 1 1 1 {ticks} 0 0 0 1");
        let before = Usage::parse("cpu  100 0 0 900 0 0 0 0 5 5", &own(0)).unwrap();
        let after = Usage::parse("cpu  200 0 0 970 0 0 0 30 5 5", &own(80)).unwrap();
        let text = after.describe(before);
        assert!(
            text.contains("used 10.0 %") && text.contains("took 15.0 %") && text.contains("too much"),
            "{text}"
        );
        assert!(before.describe(Usage { total: 0, ..before }).contains("0.0 %: quiet"));
    }

    #[test]
    fn other_formats_are_refused() {
        assert_eq!(Usage::parse("cpu 1 2 3", "1 (a) R"), None);
        assert_eq!(Usage::parse("", ""), None);
    }
}
