//! Passes the version of the compiler to the report.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=RUSTC");
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc).arg("--version").output().map(|it| it.stdout).unwrap_or_default();
    println!("cargo::rustc-env=SHARDWHEEL_BENCH_RUSTC={}", String::from_utf8_lossy(&version).trim());
}
