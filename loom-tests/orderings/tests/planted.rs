//! Orderings of a small package of its own are weakened: a model has to notice those that are needed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use shardwheel_orderings::mutant::{self, Mutant};
use shardwheel_orderings::results::Results;
use shardwheel_orderings::session::Session;
use shardwheel_orderings::suite::Suite;
use shardwheel_orderings::trial::{Trial, Verdict};

const NATIVE: Suite = Suite { package: "planted", ..Suite::NATIVE };

const SUITES: [Suite; 2] =
    [Suite { name: "loom", cfgs: &["planted_loom"], is_native: false, ..NATIVE }, NATIVE];

fn mutants() -> Vec<Mutant> {
    mutant::all(Path::new(env!("CARGO_MANIFEST_DIR")), Path::new("planted/src/lib.rs"))
        .expect("they are there")
}

/// The tests use the same directory, one after the other, so that the model is built once.
static DIRECTORY: Mutex<()> = Mutex::new(());

fn session(budget: Duration) -> Session<'static> {
    Session {
        root: Path::new(env!("CARGO_MANIFEST_DIR")),
        left_out: &[],
        suites: &SUITES,
        directory: Path::new(env!("CARGO_TARGET_TMPDIR")).join("planted"),
        jobs: 1,
        budget,
    }
}

fn turn() -> MutexGuard<'static, ()> {
    DIRECTORY.lock().unwrap_or_else(PoisonError::into_inner)
}

fn of<'r>(results: &'r Results, mutants: &[Mutant], operation: &str) -> &'r Trial {
    let mut named = mutants.iter().filter(|mutant| mutant.site.operation.starts_with(operation));
    let name = named.next().map(Mutant::name).expect("there is such an operation");
    results.of(&name).expect("it was tried")
}

#[test]
fn a_model_catches_what_is_needed_and_nothing_else_is_caught() {
    let _turn = turn();
    let (mutants, mut results) = (mutants(), Results::default());
    let session = session(Duration::from_secs(600));
    let said = AtomicUsize::new(0);
    let say = |_: &str| {
        said.fetch_add(1, Ordering::Relaxed);
    };
    session.run(&mutants, &mut results, say).expect("the sources are in order");
    assert_eq!(mutants.len(), 4);
    assert_eq!(said.load(Ordering::Relaxed), SUITES.len() + mutants.len());

    let caught = Verdict::Caught {
        suite: "loom".to_owned(),
        test: "models::a_full_box_has_the_letter".to_owned(),
        said: "an empty letter".to_owned(),
    };
    assert_eq!(of(&results, &mutants, "self.is_full.store").verdict, caught);
    assert_eq!(of(&results, &mutants, "self.is_full.load").verdict, caught);

    let not_needed = of(&results, &mutants, "self.posted.fetch_add");
    assert_eq!(not_needed.verdict, Verdict::NotCaught);
    assert_eq!(not_needed.suites, ["loom", "native"]);
    let not_in_models = of(&results, &mutants, "self.posted.load");
    assert_eq!(not_in_models.verdict, Verdict::NotCaught);
    assert_eq!(not_in_models.suites, ["native"]);

    session.run(&mutants, &mut results, say).expect("there is nothing left to do");
    assert_eq!(said.load(Ordering::Relaxed), SUITES.len() + mutants.len());
}

#[test]
fn without_time_nothing_is_found_out() {
    let _turn = turn();
    let mutants = &mutants()[..1];
    let mut results = Results::default();
    session(Duration::ZERO).run(mutants, &mut results, |_| ()).expect("the sources are in order");
    let Verdict::Undecided(cut_off) = &of(&results, mutants, "self.is_full.store").verdict else {
        panic!("it cannot have been found out")
    };
    let expected =
        ["models::a_full_box_has_the_letter", "models::letters_are_counted", "native::letters_are_counted"];
    let mut cut_off = cut_off.clone();
    cut_off.sort();
    assert_eq!(cut_off, expected);
}
