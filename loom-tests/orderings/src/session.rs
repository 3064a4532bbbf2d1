//! A run of the tool: several workshops try the mutants in turn.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::mutant::Mutant;
use crate::results::Results;
use crate::suite::Suite;
use crate::tree;
use crate::trial::{Times, Trial, Verdict, Workshop};

/// A repository, and how its mutants are tried.
#[derive(Debug)]
pub struct Session<'s> {
    /// The repository's root.
    pub root: &'s Path,
    /// Paths that are not copied.
    pub left_out: &'s [&'s str],
    /// Its suites.
    pub suites: &'s [Suite],
    /// The working directory; each workshop has a directory in it.
    pub directory: PathBuf,
    /// How many mutants are tried at once.
    pub jobs: usize,
    /// The time limit for the tests of one mutant.
    pub budget: Duration,
}

impl Session<'_> {
    /// Returns a fingerprint of the sources that the results depend on.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn fingerprint(&self) -> Result<String, Error> {
        tree::fingerprint(self.root, &tree::files(self.root, self.left_out)?)
    }

    /// Tries the mutants that have no result yet, and passes a line about each to `say`.
    ///
    /// # Errors
    ///
    /// If the unchanged sources fail, or something cannot be read, written or started.
    pub fn run(
        &self,
        mutants: &[Mutant],
        results: &mut Results,
        say: impl Fn(&str) + Sync,
    ) -> Result<(), Error> {
        let open = mutants.iter().filter(|mutant| results.of(&mutant.name()).is_none()).collect::<Vec<_>>();
        if open.is_empty() {
            return Ok(());
        }
        let files = tree::files(self.root, self.left_out)?;
        let workshop =
            |job: usize| Workshop::new(&self.directory.join(job.to_string()), self.root, &files, self.suites);
        let first = workshop(0)?;
        if results.times.is_none() {
            results.measured(first.times(&say)?)?;
        }
        let times = results.times.clone().unwrap_or_default();
        let others = (1..self.jobs).map(workshop).collect::<Result<Vec<_>, _>>()?;
        let work = Work {
            count: open.len(),
            open: Mutex::new(open.into_iter().enumerate()),
            results: Mutex::new(results),
        };
        thread::scope(|scope| {
            let job = |workshop: Workshop| work.take_turns(&workshop, &times, self.budget, &say);
            let jobs = others.into_iter().chain([first]).map(|workshop| scope.spawn(move || job(workshop)));
            let jobs = jobs.collect::<Vec<_>>();
            jobs.into_iter()
                .try_for_each(|job| job.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }
}

/// What the workshops share.
struct Work<'r, I> {
    count: usize,
    open: Mutex<I>,
    results: Mutex<&'r mut Results>,
}

impl<'m, I: Iterator<Item = (usize, &'m Mutant)>> Work<'_, I> {
    fn take_turns(
        &self,
        workshop: &Workshop<'_>,
        times: &Times,
        budget: Duration,
        say: &impl Fn(&str),
    ) -> Result<(), Error> {
        while let Some((number, mutant)) = self.next() {
            let trial = workshop.try_out(mutant, times, budget)?;
            say(&format!("{}/{} {}", number + 1, self.count, told(&trial)));
            self.results.lock().unwrap_or_else(PoisonError::into_inner).tried(trial)?;
        }
        Ok(())
    }

    fn next(&self) -> Option<(usize, &'m Mutant)> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}

fn told(trial: &Trial) -> String {
    let Trial { mutant, build_seconds, test_seconds, verdict, .. } = trial;
    let verdict = match verdict {
        Verdict::Caught { test, .. } => format!("caught by {test}"),
        Verdict::NotCaught => "not caught".to_owned(),
        Verdict::Undecided(tests) => format!("not found out, cut off: {}", tests.join(", ")),
        Verdict::DoesNotBuild(said) => format!("does not build:\n{said}"),
    };
    format!("{mutant}: built in {build_seconds:.1} s, tested in {test_seconds:.1} s: {verdict}")
}
