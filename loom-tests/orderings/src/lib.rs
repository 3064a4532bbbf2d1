#![doc = include_str!("../README.md")]

use std::path::{Path, PathBuf};

pub mod condition;
pub mod error;
pub mod mutant;
pub mod reasons;
pub mod report;
pub mod results;
pub mod session;
pub mod site;
pub mod suite;
pub mod tree;
pub mod trial;
pub mod weaker;

/// The text of the reasons file.
pub const REASONS: &str = include_str!("../reasons.md");

/// Returns the root of the repository that contains this package.
///
/// # Errors
///
/// If the package is no longer where it was built.
pub fn repository() -> Result<PathBuf, error::Error> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    root.canonicalize().map_err(error::Error::file(root))
}
