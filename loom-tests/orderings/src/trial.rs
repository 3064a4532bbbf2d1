//! The trial of a mutant: it is built, and its tests run until one of them fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::mutant::Mutant;
use crate::suite::{Outcome, Suite, Test};
use crate::tree;
use crate::weaker::Role;

/// How long each test takes on the unchanged sources, in seconds, by its label.
pub type Times = BTreeMap<String, f64>;

/// A weaker ordering may give a model more executions, at most by this factor.
const SLOWER: f64 = 10.0;

/// The shortest time limit of a test, because the machine may have other work.
const AT_LEAST: Duration = Duration::from_secs(60);

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// A test failed.
    Caught {
        /// Its suite.
        suite: String,
        /// Its label.
        test: String,
        /// Its message.
        said: String,
    },
    /// All tests that are built with the mutant passed.
    NotCaught,
    /// No test failed, but these were cut off, or had no time left.
    Undecided(Vec<String>),
    /// It does not build, so the trial shows nothing.
    DoesNotBuild(String),
}

/// The result of a mutant, and how long the trial took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// The mutant's name.
    pub mutant: String,
    /// The suites that are built with the mutant.
    pub suites: Vec<String>,
    /// The result.
    pub verdict: Verdict,
    /// How long the builds took, in seconds.
    pub build_seconds: f64,
    /// How long the tests took, in seconds.
    pub test_seconds: f64,
}

/// The place where mutants are made and tried: a copy of the repository, and its builds.
#[derive(Debug)]
pub struct Workshop<'s> {
    suites: &'s [Suite],
    copy: PathBuf,
    target: PathBuf,
    log: PathBuf,
    /// The names that are set in every build here.
    host: BTreeSet<String>,
}

impl<'s> Workshop<'s> {
    /// Makes a workshop in `directory`, with a copy of `files`.
    ///
    /// # Errors
    ///
    /// If the files cannot be copied, or there is no compiler.
    pub fn new(
        directory: &Path,
        root: &Path,
        files: &BTreeSet<PathBuf>,
        suites: &'s [Suite],
    ) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(Error::file(directory))?;
        // Absolute, because programs are started in other directories.
        let directory = directory.canonicalize().map_err(Error::file(directory))?;
        let copy = directory.join("copy");
        tree::copy(root, files, &copy)?;
        let output = Command::new("rustc").args(["--print", "cfg"]).current_dir(&copy).output();
        let output = output.map_err(Error::file(Path::new("rustc")))?.stdout;
        let host = String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
        Ok(Self { suites, copy, target: directory.join("target"), log: directory.join("log"), host })
    }

    /// Returns the suites whose builds contain the mutant's change, and that may notice it.
    pub fn suites_of(&self, mutant: &Mutant) -> impl Iterator<Item = &'s Suite> {
        let is_fence = mutant.site.role == Role::Fence;
        let sees = move |suite: &&Suite| suite.sees_fences || !is_fence;
        self.suites.iter().filter(sees).filter(|suite| mutant.is_built_with(&suite.set(&self.host)))
    }

    /// Runs all tests on the unchanged sources, and passes a line about each suite to `say`.
    ///
    /// # Errors
    ///
    /// If the sources do not build, or a test fails.
    pub fn times(&self, say: impl Fn(&str)) -> Result<Times, Error> {
        let mut times = Times::new();
        for suite in self.suites {
            say(&format!("{}, as the sources are", suite.name));
            for test in suite.build(&self.copy, &self.target)? {
                let start = Instant::now();
                match test.run(Duration::MAX, &self.log)? {
                    Outcome::Failed(said) => return Err(Error::Red { test: test.label, said }),
                    Outcome::Passed | Outcome::CutOff => {
                        times.insert(test.label, start.elapsed().as_secs_f64());
                    }
                }
            }
        }
        Ok(times)
    }

    /// Makes the mutant and tries it; `budget` is the time for all of its tests.
    ///
    /// # Errors
    ///
    /// If files cannot be written, or programs cannot be started.
    pub fn try_out(&self, mutant: &Mutant, times: &Times, budget: Duration) -> Result<Trial, Error> {
        let file = self.copy.join(&mutant.file);
        let text = fs::read_to_string(&file).map_err(Error::file(&file))?;
        fs::write(&file, mutant.site.weaken(&text, mutant.weaker)).map_err(Error::file(&file))?;
        let trial = self.try_built(mutant, times, budget);
        fs::write(&file, text).map_err(Error::file(&file))?;
        trial
    }

    fn try_built(&self, mutant: &Mutant, times: &Times, budget: Duration) -> Result<Trial, Error> {
        let mut run = Run { times, left: budget, cut_off: Vec::new(), log: &self.log };
        let mut build = Duration::ZERO;
        let mut caught = None;
        for suite in self.suites_of(mutant) {
            let start = Instant::now();
            let tests = suite.build(&self.copy, &self.target);
            build += start.elapsed();
            caught = match tests {
                Ok(tests) => run.tests(suite, tests)?,
                Err(Error::Build { said, .. }) => Some(Verdict::DoesNotBuild(said)),
                Err(other) => return Err(other),
            };
            if caught.is_some() {
                break;
            }
        }
        Ok(Trial {
            mutant: mutant.name(),
            suites: self.suites_of(mutant).map(|suite| suite.name.to_owned()).collect(),
            build_seconds: build.as_secs_f64(),
            test_seconds: (budget - run.left).as_secs_f64(),
            verdict: caught.unwrap_or_else(|| run.not_caught()),
        })
    }
}

/// The tests of one mutant.
struct Run<'t> {
    times: &'t Times,
    left: Duration,
    cut_off: Vec<String>,
    log: &'t Path,
}

impl Run<'_> {
    /// Runs tests, the shortest first, until one catches the mutant.
    fn tests(&mut self, suite: &Suite, mut tests: Vec<Test>) -> Result<Option<Verdict>, Error> {
        tests.sort_by(|a, b| self.time(a).total_cmp(&self.time(b)));
        for test in tests {
            if self.left.is_zero() {
                self.cut_off.push(test.label);
                continue;
            }
            let own = AT_LEAST.max(Duration::from_secs_f64(SLOWER * self.time(&test)));
            let start = Instant::now();
            let outcome = test.run(own.min(self.left), self.log)?;
            let hangs = suite.is_native && self.left > own;
            self.left = self.left.saturating_sub(start.elapsed());
            let said = match outcome {
                Outcome::Passed => continue,
                Outcome::CutOff if hangs => format!("did not end within {} s", own.as_secs()),
                Outcome::CutOff => {
                    self.cut_off.push(test.label);
                    continue;
                }
                Outcome::Failed(said) => said,
            };
            return Ok(Some(Verdict::Caught { suite: suite.name.to_owned(), test: test.label, said }));
        }
        Ok(None)
    }

    fn time(&self, test: &Test) -> f64 {
        self.times.get(&test.label).copied().unwrap_or(0.0)
    }

    fn not_caught(self) -> Verdict {
        if self.cut_off.is_empty() { Verdict::NotCaught } else { Verdict::Undecided(self.cut_off) }
    }
}
