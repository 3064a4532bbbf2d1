//! Hands the version of the compiler in use to the report, which prints it beside the figures.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rerun-if-changed=build.rs");
    let version = compiler_version().unwrap_or_else(|| "an unknown rustc".to_owned());
    println!("cargo::rustc-env=SHARDWHEEL_BENCH_RUSTC={}", version.trim());
}

fn compiler_version() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    String::from_utf8(output.stdout).ok()
}
