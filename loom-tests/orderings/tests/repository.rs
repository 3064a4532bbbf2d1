//! The sources as they are, and the reasons that are given for them.

use std::path::Path;

use shardwheel_orderings::reasons::Reasons;
use shardwheel_orderings::{REASONS, mutant, repository};

#[test]
fn every_ordering_is_understood_and_every_reason_is_for_one() {
    let root = repository().expect("it is where it was built");
    let mutants = mutant::all(&root, Path::new("src/lib.rs")).expect("every ordering is understood");
    assert!(!mutants.is_empty());
    assert_eq!(Reasons::read(REASONS).complaints(&mutants), []);
}
