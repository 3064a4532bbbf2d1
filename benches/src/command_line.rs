//! What the programs' command lines have in common, each read by hand.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{ArgError, CHILD, draw_charts, parse_size};

/// Reads options, each followed by its value, with `set`; false where help is asked for.
///
/// # Errors
///
/// The first that `set` returns, or a known option without a value.
pub fn read_options(
    mut words: impl Iterator<Item = String>,
    known: &[&str],
    mut set: impl FnMut(String, String) -> Result<(), ArgError>,
) -> Result<bool, ArgError> {
    while let Some(option) = words.next() {
        if ["-h", "--help"].contains(&option.as_str()) {
            return Ok(false);
        }
        if !known.contains(&option.as_str()) {
            return Err(ArgError::Unknown(option));
        }
        let Some(value) = words.next() else { return Err(ArgError::NoValue(option)) };
        set(option, value)?;
    }
    Ok(true)
}

/// A number of rounds: 1 or more.
#[must_use]
pub fn parse_rounds(value: &str) -> Option<usize> {
    value.parse().ok().filter(|&rounds| rounds > 0)
}

/// Numbers of timers, between commas.
#[must_use]
pub fn parse_sizes(value: &str) -> Option<Vec<usize>> {
    value.split(',').map(parse_size).collect()
}

/// Keeps the name of a file or a directory.
pub fn set_path(path: &mut Option<PathBuf>, value: &str) -> Option<()> {
    *path = Some(value.into());
    (!value.is_empty()).then_some(())
}

/// Sections that are to be run; none named stands for all.
#[derive(Default)]
pub struct Only(Vec<String>);

impl Only {
    /// Adds the names between commas; `None` if one is not known.
    pub fn add(&mut self, value: &str, known: impl Fn(&str) -> bool) -> Option<()> {
        self.0.extend(value.split(',').map(str::to_owned));
        self.0.iter().all(|name| known(name)).then_some(())
    }

    /// Whether a section is to be run.
    #[must_use]
    pub fn wants(&self, section: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| name == section)
    }
}

/// Starts this program again, as a child that is given those words, and returns what it prints.
///
/// # Errors
///
/// If it cannot be started, or fails; what it says of that goes to standard error.
pub fn ask_child(words: impl IntoIterator<Item = String>) -> io::Result<Vec<u8>> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.arg(CHILD).args(words).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("its process ended with {}", output.status)));
    }
    Ok(output.stdout)
}

/// Writes everything to a file, and the charts of it to a directory, each where there is one; returns whether that
/// went well, and says on the terminal what did not.
#[must_use]
pub fn keep(json: Option<&Path>, charts: Option<&Path>, all: &Value) -> bool {
    let written = json.map_or(Ok(()), |file| std::fs::write(file, format!("{all:#}\n")));
    if let Err(error) = &written {
        eprintln!("the JSON file could not be written: {error}");
    }
    let drawn = charts.map_or(Ok(Vec::new()), |dir| draw_charts(dir, all));
    match &drawn {
        Ok(files) => files.iter().for_each(|file| eprintln!("drawn: {file}")),
        Err(error) => eprintln!("the charts could not be drawn: {error}"),
    }
    written.is_ok() && drawn.is_ok()
}
