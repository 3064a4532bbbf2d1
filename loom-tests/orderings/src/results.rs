//! Results so far, kept in a file, so that hours of work survive an interruption.
//!
//! Each line is a JSON value: the fingerprint of the sources, the times of the tests, or the result
//! of a mutant.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::trial::{Times, Trial};

/// A line of the file.
#[derive(Serialize, Deserialize)]
enum Line {
    Sources(String),
    Times(Times),
    Trial(Trial),
}

/// The results, and the file that keeps them, if any.
#[derive(Debug, Default)]
pub struct Results {
    /// How long the tests take.
    pub times: Option<Times>,
    trials: BTreeMap<String, Trial>,
    file: Option<(PathBuf, File)>,
}

impl Results {
    /// Continues with the results in the file, or creates the file. The results must come from
    /// sources with the fingerprint `sources`.
    ///
    /// # Errors
    ///
    /// If the results come from other sources, or the file cannot be used.
    pub fn resume(path: &Path, sources: &str) -> Result<Self, Error> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(Error::file(path))?,
        };
        // An interruption may have cut the last line.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(Error::file(path))?;
        file.set_len(whole as u64).map_err(Error::file(path))?;
        let mut results = Self { file: Some((path.to_owned(), file)), ..Self::default() };
        for line in text[..whole].lines() {
            match serde_json::from_str(line).map_err(|error| Error::file(path)(error.into()))? {
                Line::Sources(of) if of == sources => {}
                Line::Sources(_) => return Err(Error::OtherSources(path.to_owned())),
                Line::Times(times) => results.times = Some(times),
                Line::Trial(trial) => drop(results.trials.insert(trial.mutant.clone(), trial)),
            }
        }
        if whole == 0 {
            results.write(&Line::Sources(sources.to_owned()))?;
        }
        Ok(results)
    }

    /// Returns the result of the mutant of that name, if it has been tried.
    #[must_use]
    pub fn of(&self, mutant: &str) -> Option<&Trial> {
        self.trials.get(mutant)
    }

    /// Records how long the tests take.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn measured(&mut self, times: Times) -> Result<(), Error> {
        self.write(&Line::Times(times.clone()))?;
        self.times = Some(times);
        Ok(())
    }

    /// Records the result of a mutant.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn tried(&mut self, trial: Trial) -> Result<(), Error> {
        self.write(&Line::Trial(trial.clone()))?;
        self.trials.insert(trial.mutant.clone(), trial);
        Ok(())
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let text = serde_json::to_string(line).map_err(|error| Error::file(path)(error.into()))?;
        file.write_all(format!("{text}\n").as_bytes()).map_err(Error::file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Verdict;

    fn trial(mutant: &str) -> Trial {
        let verdict = Verdict::Undecided(vec!["word::one".to_owned()]);
        Trial {
            mutant: mutant.to_owned(),
            suites: Vec::new(),
            verdict,
            build_seconds: 1.0,
            test_seconds: 2.0,
        }
    }

    #[test]
    fn results_are_there_again_but_for_a_line_that_was_interrupted() {
        let path = std::env::temp_dir().join(format!("shardwheel-orderings-results-{}", std::process::id()));
        let mut results = Results::resume(&path, "abc").expect("it begins");
        results.measured(Times::from([("word::one".to_owned(), 0.5)])).expect("it is written");
        results.tried(trial("first")).expect("it is written");
        results.tried(trial("second")).expect("it is written");
        let text = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, &text[..text.len() - 5]).expect("it is written");

        let mut again = Results::resume(&path, "abc").expect("it goes on");
        assert_eq!(again.times.as_ref().and_then(|times| times.get("word::one")), Some(&0.5));
        assert_eq!(again.of("first").map(|trial| &trial.verdict), Some(&trial("").verdict));
        assert!(again.of("second").is_none());
        again.tried(trial("third")).expect("it is written");
        assert!(Results::resume(&path, "abc").expect("it goes on").of("third").is_some());

        let other = Results::resume(&path, "def");
        fs::remove_file(&path).expect("it is there");
        assert!(matches!(other, Err(Error::OtherSources(of)) if of == path));
    }
}
