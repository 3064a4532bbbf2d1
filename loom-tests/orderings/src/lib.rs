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

/// The file of reasons.
pub const REASONS: &str = include_str!("../reasons.md");

/// The repository that this package stands in.
///
/// # Errors
///
/// If it is not where it was when this was built.
pub fn repository() -> Result<PathBuf, error::Error> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    root.canonicalize().map_err(error::Error::file(root))
}
