//! The reasons why an ordering stays although no test notices a weaker one.
//!
//! The file is Markdown: each heading of the second level is the name of a mutant, and the text
//! after it is the reason.

use std::collections::BTreeMap;
use std::fmt;

use crate::mutant::Mutant;
use crate::results::Results;
use crate::trial::{Trial, Verdict};

/// Reasons, by the names of mutants.
#[derive(Debug)]
pub struct Reasons(BTreeMap<String, String>);

/// Why a run does not show that every ordering is needed.
#[derive(Debug, PartialEq, Eq)]
pub enum Complaint {
    /// A reason exists, but no such mutant.
    NoSuchMutant(String),
    /// A heading exists, but no text under it.
    Empty(String),
    /// A reason says that no test notices the mutant, but a test does.
    Caught(String),
    /// No test noticed the mutant, and no reason exists.
    NoReason(String),
    /// The result is unknown: tests were cut off, or the mutant does not build.
    Unknown(String),
}

impl Reasons {
    /// Reads the text of the file.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let mut parts = text.split("\n## ");
        // The text before the first heading is for human readers.
        parts.next();
        let reasons = parts.map(|part| {
            let (name, reason) = part.split_once('\n').unwrap_or((part, ""));
            (name.trim().to_owned(), reason.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        Self(reasons.collect())
    }

    /// Returns the reason for the mutant of that name.
    #[must_use]
    pub fn of(&self, mutant: &str) -> Option<&str> {
        self.0.get(mutant).map(String::as_str)
    }

    /// Returns what is wrong with the reasons alone; `mutants` has all mutants.
    #[must_use]
    pub fn complaints(&self, mutants: &[Mutant]) -> Vec<Complaint> {
        let exists = |name: &str| mutants.iter().any(|mutant| mutant.name() == name);
        let complaint = |(name, reason): (&String, &String)| match reason.as_str() {
            _ if !exists(name) => Some(Complaint::NoSuchMutant(name.clone())),
            "" => Some(Complaint::Empty(name.clone())),
            _ => None,
        };
        self.0.iter().filter_map(complaint).collect()
    }

    /// Returns what keeps the results of these mutants from showing that every ordering is needed.
    #[must_use]
    pub fn complaints_about(&self, mutants: &[Mutant], results: &Results) -> Vec<Complaint> {
        let names = mutants.iter().map(Mutant::name);
        names.filter_map(|name| self.complaint_about(results.of(&name), name)).collect()
    }

    fn complaint_about(&self, trial: Option<&Trial>, name: String) -> Option<Complaint> {
        match (&trial?.verdict, self.of(&name)) {
            (Verdict::Caught { .. }, Some(_)) => Some(Complaint::Caught(name)),
            (Verdict::NotCaught, None) => Some(Complaint::NoReason(name)),
            (Verdict::Undecided(_) | Verdict::DoesNotBuild(_), _) => Some(Complaint::Unknown(name)),
            (Verdict::Caught { .. }, None) | (Verdict::NotCaught, Some(_)) => None,
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchMutant(name) => write!(f, "a reason for what is not there: {name}"),
            Self::Empty(name) => write!(f, "a heading without a reason: {name}"),
            Self::Caught(name) => write!(f, "a reason for what is caught: {name}"),
            Self::NoReason(name) => write!(f, "not caught, and no reason: {name}"),
            Self::Unknown(name) => write!(f, "not found out: {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site;

    fn mutants() -> Vec<Mutant> {
        let text = "fn f() { a.load(Acquire); b.load(Acquire); c.load(Acquire); d.load(Acquire); }";
        let sites = site::find(text, &[]).expect("it is Rust").sites;
        let mutant = |site: crate::site::Site| Mutant {
            file: "a.rs".to_owned(),
            weaker: site.order.weaker(site.role)[0],
            site,
            number: 1,
        };
        sites.into_iter().map(mutant).collect()
    }

    fn name(atomic: &str) -> String {
        format!("a.rs f: {atomic}.load(Acquire): Acquire -> Relaxed")
    }

    fn text() -> String {
        let (a, b, e) = (name("a"), name("b"), name("e"));
        format!(
            "# For people\n\n## {a}\n\nBecause of\nthat.\n\n## {b}\n\nSo.\n\n## {e}\nGone.\n\n## {}\n",
            name("d")
        )
    }

    #[test]
    fn a_reason_is_what_stands_under_the_name() {
        assert_eq!(Reasons::read(&text()).of(&name("a")), Some("Because of that."));
        assert_eq!(Reasons::read(&text()).of(&name("c")), None);
    }

    #[test]
    fn reasons_for_what_is_not_there_and_headings_alone_are_refused() {
        let expected = [Complaint::Empty(name("d")), Complaint::NoSuchMutant(name("e"))];
        assert_eq!(Reasons::read(&text()).complaints(&mutants()), expected);
    }

    #[test]
    fn results_and_reasons_have_to_fit() {
        let caught = Verdict::Caught { suite: "loom".into(), test: "t".into(), said: "s".into() };
        let verdicts = [
            ("a", Verdict::NotCaught),
            ("b", caught),
            ("c", Verdict::NotCaught),
            ("d", Verdict::Undecided(vec!["t".into()])),
        ];
        let mut results = Results::default();
        for (atomic, verdict) in verdicts {
            let mutant = name(atomic);
            let trial = Trial { mutant, suites: Vec::new(), verdict, build_seconds: 0.0, test_seconds: 0.0 };
            results.tried(trial).expect("there is no file");
        }
        let expected =
            [Complaint::Caught(name("b")), Complaint::NoReason(name("c")), Complaint::Unknown(name("d"))];
        assert_eq!(Reasons::read(&text()).complaints_about(&mutants(), &results), expected);
    }
}
