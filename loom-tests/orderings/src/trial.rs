//! A mutant is tried: it is built and its tests are run until one of them fails.

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

/// How long each test takes as the sources are, in seconds, by its label.
pub type Times = BTreeMap<String, f64>;

/// A weaker ordering may give a model more executions, by so much.
const SLOWER: f64 = 10.0;

/// What a test is given at least; the machine may have other work.
const AT_LEAST: Duration = Duration::from_secs(60);

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// A test failed.
    Caught {
        /// Its suite.
        suite: String,
        /// Its label.
        test: String,
        /// What it said.
        said: String,
    },
    /// All tests passed that are built with it.
    NotCaught,
    /// None failed, but these were cut off, or had no time left.
    Undecided(Vec<String>),
    /// It does not build, so it says nothing.
    DoesNotBuild(String),
}

/// What became of a mutant, and how long that took.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trial {
    /// Its name.
    pub mutant: String,
    /// The suites that are built with it.
    pub suites: Vec<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// How long its builds took.
    pub build_seconds: f64,
    /// How long its tests took.
    pub test_seconds: f64,
}

/// Where mutants are made and tried: a copy of the repository, and what was built of it.
#[derive(Debug)]
pub struct Workshop<'s> {
    suites: &'s [Suite],
    copy: PathBuf,
    target: PathBuf,
    log: PathBuf,
    /// The names that are set wherever something is built here.
    host: BTreeSet<String>,
}

impl<'s> Workshop<'s> {
    /// A workshop in `directory`, with a copy of those files.
    ///
    /// # Errors
    ///
    /// If they cannot be copied, or there is no compiler.
    pub fn new(
        directory: &Path,
        root: &Path,
        files: &BTreeSet<PathBuf>,
        suites: &'s [Suite],
    ) -> Result<Self, Error> {
        fs::create_dir_all(directory).map_err(Error::file(directory))?;
        // Programs are started in other directories.
        let directory = directory.canonicalize().map_err(Error::file(directory))?;
        let copy = directory.join("copy");
        tree::copy(root, files, &copy)?;
        let output = Command::new("rustc").args(["--print", "cfg"]).current_dir(&copy).output();
        let output = output.map_err(Error::file(Path::new("rustc")))?.stdout;
        let host = String::from_utf8_lossy(&output).lines().map(str::to_owned).collect();
        Ok(Self { suites, copy, target: directory.join("target"), log: directory.join("log"), host })
    }

    /// The suites that are built with the mutant's weakness in them, and may see it.
    pub fn suites_of(&self, mutant: &Mutant) -> impl Iterator<Item = &'s Suite> {
        let is_fence = mutant.site.role == Role::Fence;
        let sees = move |suite: &&Suite| suite.sees_fences || !is_fence;
        self.suites.iter().filter(sees).filter(|suite| mutant.is_built_with(&suite.set(&self.host)))
    }

    /// Runs all tests as the sources are, and tells `say` of each suite.
    ///
    /// # Errors
    ///
    /// If they do not build, or one fails.
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

    /// Makes the mutant and tries it; its tests have `budget` in all.
    ///
    /// # Errors
    ///
    /// If files cannot be written, or programs not started.
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
    /// Runs tests until one catches the mutant, those first that take the least time.
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
