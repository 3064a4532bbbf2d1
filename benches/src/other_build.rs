//! A second build of this program, with tokio's alternative timer.
//!
//! `--cfg tokio_unstable` changes all of tokio. So the build has a folder of its own beside that of
//! this program, and the runs that need it are started there.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, io};

const CFG: &str = "tokio_unstable";

/// Returns the program of the second build. The first call builds it, which takes some minutes.
pub(crate) fn program() -> io::Result<PathBuf> {
    static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = PROGRAM.get_or_init(|| build().map_err(|error| error.to_string()));
    built.clone().map_err(io::Error::other)
}

fn build() -> io::Result<PathBuf> {
    let this = env::current_exe()?;
    let profiles = this.parent().and_then(Path::parent);
    let target = profiles.ok_or_else(|| io::Error::other("the program is in no target folder"))?.join(CFG);
    let flags = env::var("RUSTFLAGS").unwrap_or_default();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let built = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir"])
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("RUSTFLAGS", format!("{flags} --cfg {CFG}"))
        .status()?;
    match built.success() {
        true => Ok(target.join("release").join(this.file_name().unwrap_or_default())),
        false => Err(io::Error::other(format!("the build with `--cfg {CFG}` has failed"))),
    }
}
