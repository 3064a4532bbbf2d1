//! The repository's files, and a working copy of them.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Cargo writes this file into each directory that it builds in.
const BUILT: &str = "CACHEDIR.TAG";

/// Extensions of the files that determine a build.
const SOURCES: [&str; 3] = ["rs", "toml", "lock"];

/// Lists the files under `root`, by their paths from it. Hidden files, build directories and
/// everything under `left_out` are skipped.
///
/// # Errors
///
/// If a directory cannot be read.
pub fn files(root: &Path, left_out: &[&str]) -> Result<BTreeSet<PathBuf>, Error> {
    let mut files = BTreeSet::new();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        let path = root.join(&directory);
        for entry in fs::read_dir(&path).map_err(Error::file(&path))? {
            let name = entry.map_err(Error::file(&path))?.file_name();
            let inner = directory.join(&name);
            if name.to_string_lossy().starts_with('.') || left_out.iter().any(|it| inner == Path::new(it)) {
                continue;
            }
            match root.join(&inner) {
                path if path.join(BUILT).exists() => {}
                path if path.is_dir() => open.push(inner),
                _ => drop(files.insert(inner)),
            }
        }
    }
    Ok(files)
}

/// Returns a hash of the source files' paths and contents.
///
/// # Errors
///
/// If a file cannot be read.
pub fn fingerprint(root: &Path, files: &BTreeSet<PathBuf>) -> Result<String, Error> {
    let mut hasher = DefaultHasher::new();
    let is_source = |file: &&PathBuf| SOURCES.iter().any(|it| file.extension().is_some_and(|end| end == *it));
    for file in files.iter().filter(is_source) {
        let path = root.join(file);
        (file, fs::read(&path).map_err(Error::file(&path))?).hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Copies the files to `to`, and removes everything else there.
///
/// # Errors
///
/// If a file cannot be read or written.
pub fn copy(root: &Path, files: &BTreeSet<PathBuf>, to: &Path) -> Result<(), Error> {
    if to.exists() {
        fs::remove_dir_all(to).map_err(Error::file(to))?;
    }
    for file in files {
        let (from, to) = (root.join(file), to.join(file));
        let directory = to.parent().unwrap_or(&to);
        fs::create_dir_all(directory).map_err(Error::file(directory))?;
        fs::copy(&from, &to).map_err(Error::file(&from))?;
    }
    Ok(())
}
