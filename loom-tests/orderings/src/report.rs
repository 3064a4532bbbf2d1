//! The report: a Markdown table for each file.

use std::fmt::Write;

use crate::mutant::Mutant;
use crate::reasons::Reasons;
use crate::results::Results;
use crate::trial::{Trial, Verdict};

/// Writes the report about those of the mutants that have been tried.
#[must_use]
pub fn write(mutants: &[Mutant], results: &Results, reasons: &Reasons) -> String {
    let tried = mutants.iter().filter_map(|mutant| Some((mutant, results.of(&mutant.name())?)));
    let tried = tried.collect::<Vec<_>>();
    let mut text = format!("# Memory orderings, weakened one by one\n\n{}\n", summary(mutants.len(), &tried));
    let mut file = "";
    for (mutant, trial) in tried {
        if mutant.file != file {
            file = &mutant.file;
            let _ = write!(text, "\n## {file}\n\n{HEAD}\n");
        }
        let _ = writeln!(text, "{}", row(mutant, trial, reasons.of(&trial.mutant)));
    }
    text
}

const HEAD: &str = "| function | operation | weakened | caught by |\n|---|---|---|---|";

fn summary(all: usize, tried: &[(&Mutant, &Trial)]) -> String {
    let count = |is: fn(&Verdict) -> bool| tried.iter().filter(|(_, trial)| is(&trial.verdict)).count();
    let caught = count(|verdict| matches!(verdict, Verdict::Caught { .. }));
    let not_caught = count(|verdict| *verdict == Verdict::NotCaught);
    let seconds = |of: fn(&Trial) -> f64| tried.iter().map(|(_, trial)| of(trial)).sum::<f64>();
    format!(
        "{} of {all} tried: {caught} caught, {not_caught} not caught, {} not found out. Builds took {:.0} s, tests {:.0} s.",
        tried.len(),
        tried.len() - caught - not_caught,
        seconds(|trial| trial.build_seconds),
        seconds(|trial| trial.test_seconds),
    )
}

fn row(mutant: &Mutant, trial: &Trial, reason: Option<&str>) -> String {
    let which = if mutant.number > 1 { format!(" ({})", mutant.number) } else { String::new() };
    let outcome = match &trial.verdict {
        Verdict::Caught { suite, test, said } => format!("{} ({suite}): {}", code(test), text(said)),
        Verdict::NotCaught => {
            let reason = reason.map_or_else(|| "no reason is given".to_owned(), text);
            format!("**not caught** by {}: {reason}", suites(&trial.suites))
        }
        Verdict::Undecided(tests) => {
            let tests = tests.iter().map(|test| code(test)).collect::<Vec<_>>().join(", ");
            format!("**not found out**: cut off: {tests}")
        }
        Verdict::DoesNotBuild(_) => "**not found out**: does not build".to_owned(),
    };
    let (function, operation) = (code(&mutant.site.function), code(&mutant.site.operation));
    format!("| {function} | {operation}{which} | {} | {outcome} |", mutant.change())
}

fn suites(names: &[String]) -> String {
    if names.is_empty() { "any suite, as none builds it".to_owned() } else { names.join(", ") }
}

fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Escapes the characters of a test's message that Markdown would interpret.
fn text(plain: &str) -> String {
    plain.replace('|', "\\|").replace('<', "\\<")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site;

    #[test]
    fn a_row_says_who_caught_it_or_why_nobody_can() {
        let text = "fn f() { a.fetch_update(AcqRel, Relaxed, |n| n); }";
        let site = site::find(text, &[]).expect("it is Rust").sites.remove(0);
        let weaker = site.order.weaker(site.role).iter();
        let mutant = |&weaker| Mutant { file: "src/a.rs".into(), site: site.clone(), weaker, number: 1 };
        let mutants = weaker.map(mutant).collect::<Vec<_>>();
        let mut results = Results::default();
        let caught = Verdict::Caught { suite: "loom".into(), test: "add::one".into(), said: "a | b".into() };
        for (mutant, verdict) in mutants.iter().zip([caught, Verdict::NotCaught]) {
            let (mutant, suites) = (mutant.name(), vec!["stress".to_owned()]);
            let trial = Trial { mutant, suites, verdict, build_seconds: 5.2, test_seconds: 0.7 };
            results.tried(trial).expect("there is no file");
        }
        let reasons = Reasons::read(&format!("\n## {}\nIt is strong.\n", mutants[1].name()));
        let expected = "# Memory orderings, weakened one by one

2 of 2 tried: 1 caught, 1 not caught, 0 not found out. Builds took 10 s, tests 1 s.

## src/a.rs

| function | operation | weakened | caught by |
|---|---|---|---|
| `f` | `a.fetch_update(AcqRel, Relaxed, \\|n\\| n)` | success AcqRel -> Acquire | `add::one` (loom): a \\| b |
| `f` | `a.fetch_update(AcqRel, Relaxed, \\|n\\| n)` | success AcqRel -> Release | **not caught** by stress: It is strong. |
";
        assert_eq!(write(&mutants, &results, &reasons), expected);
    }
}
