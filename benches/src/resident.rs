//! Resident memory of this process, where the system says.

use std::fs;

/// Resident memory now, in KiB; `None` but on Linux.
#[must_use]
pub fn resident_kib() -> Option<u64> {
    status("VmRSS:")
}

/// The most that was ever resident, in KiB; `None` but on Linux.
#[must_use]
pub fn peak_kib() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}
