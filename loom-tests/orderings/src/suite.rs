//! The test suites that are run on a mutant: how each is built, and how its tests are run one by
//! one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Error;

/// Names and values of environment variables.
type Environment = &'static [(&'static str, &'static str)];

/// Tests that are built in one way.
#[derive(Debug)]
pub struct Suite {
    /// Its name in the report.
    pub name: &'static str,
    /// The directory of its package, from the repository's root.
    pub package: &'static str,
    /// Names that are set with `--cfg`.
    pub cfgs: &'static [&'static str],
    /// Further flags for the compiler.
    pub flags: &'static [&'static str],
    /// The toolchain that builds it, if it is not the toolchain that built this program.
    pub toolchain: Option<&'static str>,
    /// Features of the crate under test that the suite enables.
    pub features: &'static [&'static str],
    /// Further arguments for cargo.
    pub arguments: &'static [&'static str],
    /// Environment variables of its tests.
    pub environment: Environment,
    /// Whether a fence makes a difference to it.
    pub sees_fences: bool,
    /// Whether a weaker ordering leaves its tests as fast as before, so that a test that does not
    /// end has failed. A model becomes slower, because it has more executions.
    pub is_native: bool,
}

/// The suites of this repository, built much as `.ci/run` builds them, the cheap ones first.
pub const SUITES: [Suite; 5] = [
    Suite { name: "loom", cfgs: &["shardwheel_loom"], arguments: &["--release"], ..MODELS },
    // Without the feature, a node has no tag.
    Suite {
        name: "introspect",
        cfgs: &["shardwheel_loom"],
        features: &["timer", "affinity", "stream", "introspect"],
        arguments: &["--release", "--features", "introspect", "--test", "word"],
        ..MODELS
    },
    // ThreadSanitizer instruments the standard library as well, and crossbeam-epoch then uses no
    // fences.
    Suite {
        name: "tsan",
        cfgs: &["crossbeam_sanitize", "crossbeam_sanitize_thread"],
        flags: &["-Zsanitizer=thread", "-Cunsafe-allow-abi-mismatch=sanitizer"],
        toolchain: Some("nightly"),
        arguments: &["-Zbuild-std", "--target", "host-tuple", "--lib", "--test", "shard"],
        environment: &[("TSAN_OPTIONS", "halt_on_error=1")],
        sees_fences: false,
        ..STRESS
    },
    STRESS,
    Suite {
        name: "epoch",
        cfgs: &["shardwheel_loom", "shardwheel_loom_epoch", "crossbeam_loom"],
        arguments: &["--release", "--test", "epoch"],
        ..MODELS
    },
];

const STRESS: Suite = Suite { name: "stress", arguments: &["--test", "shard"], ..Suite::NATIVE };

const MODELS: Suite = Suite { package: "loom-tests", is_native: false, ..STRESS };

/// A test that was built.
#[derive(Debug)]
pub struct Test {
    /// Its name, preceded by the name of its file.
    pub label: String,
    name: String,
    program: PathBuf,
    environment: Environment,
}

/// How a test ended.
#[derive(Debug)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// It failed, with this message.
    Failed(String),
    /// Its time was up.
    CutOff,
}

impl Suite {
    /// All tests of the root package, with default settings.
    pub const NATIVE: Self = Self {
        name: "native",
        package: ".",
        cfgs: &[],
        flags: &[],
        toolchain: None,
        features: &["timer", "affinity", "stream"],
        arguments: &[],
        environment: &[],
        sees_fences: true,
        is_native: true,
    };

    /// Returns the names that are set when the crate is built for this suite; `host` has those that
    /// are always set.
    #[must_use]
    pub fn set(&self, host: &BTreeSet<String>) -> BTreeSet<String> {
        let features = self.features.iter().map(|feature| format!("feature={feature:?}"));
        let cfgs = self.cfgs.iter().map(|&cfg| cfg.to_owned());
        host.iter().cloned().chain(cfgs).chain(features).collect()
    }

    /// Builds its tests in a copy of the repository, and returns them.
    ///
    /// # Errors
    ///
    /// If they do not build.
    pub fn build(&self, copy: &Path, target: &Path) -> Result<Vec<Test>, Error> {
        let cfgs = self.cfgs.iter().map(|cfg| format!("--cfg {cfg}"));
        let flags = cfgs.chain(self.flags.iter().map(|&flag| flag.to_owned())).collect::<Vec<_>>().join(" ");
        let mut cargo = self.cargo();
        cargo.args(["test", "--no-run", "--locked", "--quiet", "--message-format=json-render-diagnostics"]);
        cargo.args(self.arguments).current_dir(copy.join(self.package));
        // If cargo started this program, the environment has cargo's flags for this program.
        // Incremental builds take a sixth of the time for a mutant.
        cargo.env_remove("CARGO_ENCODED_RUSTFLAGS").env("RUSTFLAGS", flags);
        cargo.env("CARGO_TARGET_DIR", target.join(self.name)).env("CARGO_INCREMENTAL", "1");
        let output = cargo.stdin(Stdio::null()).output().map_err(Error::file(Path::new("cargo")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(Error::Build { suite: self.name, said });
        }
        let mut tests = Vec::new();
        for (file, program) in String::from_utf8_lossy(&output.stdout).lines().filter_map(program) {
            let names = list(&program)?;
            let test = |name: String| Test {
                label: self.label(&file, &name),
                name,
                program: program.clone(),
                environment: self.environment,
            };
            tests.extend(names.into_iter().filter(|name| has_threads(&file, name)).map(test));
        }
        Ok(tests)
    }

    fn cargo(&self) -> Command {
        let Some(toolchain) = self.toolchain else { return Command::new("cargo") };
        let mut rustup = Command::new("rustup");
        rustup.args(["run", toolchain, "cargo"]);
        rustup
    }

    /// The test's name in the report. Several suites may build the same test.
    fn label(&self, file: &str, name: &str) -> String {
        if self.toolchain.is_none() {
            format!("{file}::{name}")
        } else {
            format!("{}::{file}::{name}", self.name)
        }
    }
}

/// Reads one of cargo's messages: the program that was built, and the name of its file.
fn program(message: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(message).ok()?;
    let program = message["executable"].as_str()?;
    Some((message["target"]["name"].as_str()?.to_owned(), program.into()))
}

/// Whether an ordering can make a difference to a test: of the target `shard`, only to the tests
/// with several threads.
fn has_threads(file: &str, name: &str) -> bool {
    file != "shard" || name.starts_with("threads::")
}

fn list(program: &Path) -> Result<Vec<String>, Error> {
    let output = Command::new(program).args(["--list", "--format", "terse"]).output();
    let output = output.map_err(Error::file(program))?.stdout;
    let lines = String::from_utf8_lossy(&output);
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

impl Test {
    /// Runs the test alone, for at most `limit`; its output goes to the file `log`.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn run(&self, limit: Duration, log: &Path) -> Result<Outcome, Error> {
        /// A small part of the time of the shortest model.
        const PAUSE: Duration = Duration::from_millis(2);
        let output = File::create(log).map_err(Error::file(log))?;
        let mut command = Command::new(&self.program);
        command.args(["--exact", &self.name, "--test-threads=1", "--nocapture"]).stdin(Stdio::null());
        command.envs(self.environment.iter().copied());
        command.stdout(output.try_clone().map_err(Error::file(log))?).stderr(output);
        let mut child = command.spawn().map_err(Error::file(&self.program))?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(Error::file(&self.program))? {
                return if status.success() { Ok(Outcome::Passed) } else { failed(log, &status.to_string()) };
            }
            if start.elapsed() > limit {
                child.kill().map_err(Error::file(&self.program))?;
                child.wait().map_err(Error::file(&self.program))?;
                return Ok(Outcome::CutOff);
            }
            thread::sleep(PAUSE);
        }
    }
}

fn failed(log: &Path, status: &str) -> Result<Outcome, Error> {
    let log = fs::read(log).map_err(Error::file(log))?;
    Ok(Outcome::Failed(message(&String::from_utf8_lossy(&log)).unwrap_or(status).to_owned()))
}

/// The first line of the first panic's message, or a sanitizer's finding.
fn message(log: &str) -> Option<&str> {
    let mut lines = log.lines().map(str::trim);
    let first = lines.find(|line| line.contains("panicked at") || line.contains(SANITIZER))?;
    match first.split_once(SANITIZER) {
        Some((_, found)) => found.split(" (pid").next(),
        None => lines.find(|line| !line.is_empty()),
    }
}

/// Precedes a sanitizer's finding, which ends before the process id.
const SANITIZER: &str = "Sanitizer: ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_test_said_is_its_first_panic() {
        let log = "running 1 test\nthread 'a' panicked at src/lib.rs:1:1:\nCausality violation: no\nthread 'b' panicked at x:\ny";
        assert_eq!(message(log), Some("Causality violation: no"));
        assert_eq!(message("running 1 test\nok"), None);
        assert_eq!(message("==1==\nWARNING: ThreadSanitizer: data race (pid=1)\n  Write"), Some("data race"));
    }

    #[test]
    fn programs_are_found_among_what_cargo_says() {
        let built = r#"{"reason":"compiler-artifact","target":{"name":"word"},"executable":"/t/word-1"}"#;
        assert_eq!(program(built), Some(("word".to_owned(), "/t/word-1".into())));
        assert_eq!(
            program(r#"{"reason":"compiler-artifact","target":{"name":"x"},"executable":null}"#),
            None
        );
        assert_eq!(program("Compiling"), None);
    }

    #[test]
    fn the_suites_build_different_code() {
        let host = BTreeSet::from(["unix".to_owned()]);
        let set = |name| SUITES.iter().find(|suite| suite.name == name).map(|suite| suite.set(&host));
        assert!(set("loom").is_some_and(|names| names.contains("shardwheel_loom")));
        assert!(set("epoch").is_some_and(|names| names.contains("shardwheel_loom_epoch")));
        assert!(set("stress").is_some_and(|names| names.contains(r#"feature="timer""#)));
        assert!(set("stress").is_some_and(|names| names.is_superset(&host) && names.len() == 4));
    }

    #[test]
    fn of_a_shards_tests_those_with_several_threads_are_run() {
        assert!(has_threads("shard", "threads::duels::cancel_races_fire"));
        assert!(!has_threads("shard", "wheel::the_clock_moves_in_whole_ticks"));
        assert!(has_threads("shardwheel", "shard::slab::tests::there_is_a_limit"));
    }

    #[test]
    fn a_test_that_is_built_in_two_ways_has_two_names() {
        let labels = SUITES.iter().map(|suite| suite.label("stress", "a")).collect::<Vec<_>>();
        assert_eq!(labels.iter().filter(|&label| label == "stress::a").count(), 4);
        assert!(labels.iter().any(|label| label == "tsan::stress::a"));
    }
}
