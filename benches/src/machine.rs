//! What the figures were measured on.

use std::fs;
use std::process::Command;

use crate::cores;

/// The machine, the compiler and the commit, as lines of a Markdown list.
#[must_use]
pub fn describe() -> String {
    format!(
        "- machine: {}, {} cores, {}\n\
         - compiler: {}\n\
         - commit: {}\n\
         - huge pages (transparent): {}\n",
        cpu_model().unwrap_or_else(|| "unknown processor".to_owned()),
        cores(),
        std::env::consts::OS,
        env!("SHARDWHEEL_BENCH_RUSTC"),
        commit().unwrap_or_else(|| "not in a git checkout".to_owned()),
        huge_pages().unwrap_or_else(|| "unknown".to_owned()),
    )
}

fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The setting that the kernel shows in square brackets.
fn huge_pages() -> Option<String> {
    let settings = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").ok()?;
    Some(settings.split_once('[')?.1.split_once(']')?.0.to_owned())
}

fn commit() -> Option<String> {
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain"]).is_none_or(|files| !files.is_empty());
    Some(if changed { format!("{hash}, with changes that are not committed") } else { hash })
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(env!("CARGO_MANIFEST_DIR")).args(words).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
