//! The machine: what it is, its cores, and the memory of this process.

use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs};

use core_affinity::CoreId;
use memmap2::{Advice, MmapMut};

/// The cores of this process. The list is read before the first thread is pinned: a pinned thread
/// and the threads it starts see their own core only.
fn cores() -> &'static [CoreId] {
    static CORES: OnceLock<Vec<CoreId>> = OnceLock::new();
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default())
}

/// Pins the calling thread to the `nth` core; returns whether there is one and that worked.
pub(crate) fn pin(nth: usize) -> bool {
    cores().get(nth).is_some_and(|&core| core_affinity::set_for_current(core))
}

/// Pins the calling thread to one of the cores, in turn.
pub(crate) fn pin_in_turn(nth: usize) -> bool {
    pin(nth % cores().len().max(1))
}

/// Lists the machine, the date and the commit in Markdown.
pub(crate) fn describe() -> String {
    let unknown = || "unknown".to_owned();
    let git =
        ["-C", env!("CARGO_MANIFEST_DIR"), "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty"];
    format!(
        "- machine: {}, {} cores, {}\n- date: {}\n- compiler: {}\n- commit: {}\n",
        cpu_model().unwrap_or_else(unknown),
        cores().len(),
        env::consts::OS,
        output("date", &["-u", "+%F"]).unwrap_or_else(unknown),
        output("rustc", &["--version"]).unwrap_or_else(unknown),
        output("git", &git).unwrap_or_else(unknown),
    )
}

/// Returns what a program prints.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cpu_model() -> Option<String> {
    field(&fs::read_to_string("/proc/cpuinfo").ok()?, "model name").map(str::to_owned)
}

/// Returns what follows `name` and a colon in a file of `/proc`.
pub(crate) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

/// Makes the machine provide `bytes` of memory and gives it back to the system.
///
/// The host of a virtual machine takes free pages away and gives a page back at its first touch,
/// which takes ten times as long as the work on it. Whether a page is there is chance. After this
/// call a pass over fresh memory meets the page faults of the system only.
pub(crate) fn back_memory(bytes: usize) {
    let Some(mut pages) = MmapMut::map_anon(bytes).ok().filter(|_| bytes > 0) else { return };
    // The host takes and gives huge pages. Without the advice a touch takes longer.
    let _ = pages.advise(Advice::HugePage);
    let smallest_page = 4096;
    pages.chunks_mut(smallest_page).for_each(|page| page[0] = 1);
}

/// The resident memory of this process and its peak.
pub(crate) const RESIDENT: &str = "VmRSS";
pub(crate) const PEAK: &str = "VmHWM";

/// Returns [`RESIDENT`] or [`PEAK`] in KiB; `None` except on Linux.
pub(crate) fn memory_kib(name: &str) -> Option<f64> {
    field(&fs::read_to_string("/proc/self/status").ok()?, name)?.strip_suffix(" kB")?.parse().ok()
}

/// Processor time since the machine started, in ticks of the kernel. Times are wall-clock times, so
/// other work on the processors makes every figure worse.
#[derive(Clone, Copy)]
pub(crate) struct Usage {
    total: u64,
    busy: u64,
    stolen: u64,
    own: u64,
}

impl Usage {
    /// Above this share the figures are not reliable.
    const QUIET: f64 = 0.05;

    /// Returns the usage so far; `None` except on Linux.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?, &fs::read_to_string("/proc/self/stat").ok()?)
    }

    fn parse(all: &str, own: &str) -> Option<Self> {
        let number = |word: &str| word.parse().unwrap_or(0);
        let numbers = |text: &str| text.split_whitespace().map(number).collect::<Vec<_>>();
        // Time of users, nice ones, the kernel, idle, waiting for a disk, interrupts (2), stolen by
        // the hypervisor; the fields of guests follow and are included.
        let all = numbers(all.lines().next()?.strip_prefix("cpu")?);
        let [user, nice, system, idle, waiting, hard, soft, stolen] = *all.first_chunk::<8>()?;
        let busy = user + nice + system + hard + soft;
        // After the program's name: the times of this process and of its children that have ended.
        let own = numbers(own.rsplit_once(')')?.1).get(11..15)?.iter().sum();
        Some(Self { total: busy + idle + waiting + stolen, busy, stolen, own })
    }

    /// Describes what other work used between `before` and `self`.
    pub(crate) fn describe(self, before: Self) -> String {
        let share = |ticks: u64| 100.0 * ticks as f64 / (self.total - before.total).max(1) as f64;
        let others = share((self.busy - before.busy).saturating_sub(self.own - before.own));
        let stolen = share(self.stolen - before.stolen);
        let is_quiet = others.max(stolen) <= 100.0 * Self::QUIET;
        let verdict = if is_quiet { "quiet" } else { "**too much, the figures are not reliable**" };
        format!(
            "Other processes used {others:.1} % of the processors, the hypervisor {stolen:.1} %: {verdict}."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_of_the_time_between() {
        let own = |ticks| format!("1 (a name) R 1 1 1 1 1 1 1 1 1 1 {ticks} 0 0 0 1");
        let before = Usage::parse("cpu  100 0 0 900 0 0 0 0 5 5", &own(0)).unwrap();
        let after = Usage::parse("cpu  200 0 0 970 0 0 0 30 5 5", &own(80)).unwrap();
        let text = after.describe(before);
        assert!(text.contains("used 10.0 %") && text.contains("hypervisor 15.0 %: **too much"), "{text}");
        assert!(before.describe(before).contains("0.0 %: quiet"));
        assert!(Usage::parse("cpu 1 2 3", "1 (a) R").is_none() && Usage::parse("", "").is_none());
    }
}
