//! Runs a suite: its sections round after round, the engines in turns, each in a child process.

use std::collections::BTreeSet;
use std::io;
use std::process::{Command, ExitCode, Stdio};

use serde::{Deserialize, Serialize};

use crate::args::{Plan, label};
use crate::machine::{Usage, describe, pin};
use crate::names::OURS;
use crate::other_build;
use crate::results::Results;
use crate::suite::{Outcome, Run, Section, Sizes, Suite, Task};

/// One run, as the parent process asks for it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) suite: String,
    section: usize,
    engine: String,
    task: Task,
}

/// Measures, prints the report and writes the file of figures.
pub(crate) fn run(suite: &Suite, plan: &Plan) -> io::Result<Results> {
    let known = names(suite);
    if let Some(name) = plan.only.iter().chain(&plan.engines).find(|name| !known.contains(name.as_str())) {
        return Err(io::Error::other(format!("there is no {name:?}; there are {known:?}")));
    }
    let mut results = Results { heading: heading(suite, plan), ..Results::default() };
    print!("{}", results.heading);
    let before = Usage::now();
    for round in 0..plan.rounds.get() {
        let sections = suite.sections.iter().enumerate();
        for (nth, section) in sections.filter(|(_, section)| wants(&plan.only, section.name)) {
            for timers in if section.once && round > 0 { Vec::new() } else { sizes(section, plan) } {
                turn(suite, nth, timers, round, plan, &mut results);
            }
        }
    }
    results.conditions =
        before.zip(Usage::now()).map(|(before, now)| now.describe(before)).unwrap_or_default();
    println!("{}\n\n{}", results.conditions, results.show());
    if let Some(file) = &plan.figures {
        std::fs::write(file, results.write())?;
    }
    Ok(results)
}

fn heading(suite: &Suite, plan: &Plan) -> String {
    format!("# {}\n\n{}- rounds: {}\n\n", suite.name, describe(), plan.rounds)
}

fn wants(names: &[String], name: &str) -> bool {
    names.is_empty() || names.iter().any(|named| named == name)
}

fn sizes(section: &Section, plan: &Plan) -> Vec<usize> {
    let sizes = match section.sizes {
        Sizes::Each => &plan.sizes,
        Sizes::Many => &plan.timers,
        Sizes::Fixed(sizes) => sizes,
    };
    sizes.iter().copied().filter(|size| *size >= section.least).collect()
}

/// Runs each engine of a section, a different one first in each round, and compares what fired.
fn turn(suite: &Suite, nth: usize, timers: usize, round: usize, plan: &Plan, results: &mut Results) {
    let section = &suite.sections[nth];
    let task = Task { timers, round, operations: suite.operations, span: plan.span };
    let mut fired = Vec::new();
    for turn in 0..section.runs.len() {
        let run = &section.runs[(turn + round) % section.runs.len()];
        let engine = run.engine;
        if !wants(&plan.engines, engine) || results.has_failed(section.name, engine) {
            continue;
        }
        eprintln!("round {} of {}: {}, {}, {engine}", round + 1, plan.rounds, section.name, label(timers));
        task.back(if section.once { 0 } else { timers * suite.backing });
        let job = Job { suite: suite.name.to_owned(), section: nth, engine: engine.to_owned(), task };
        match ask(&job, run) {
            Ok(outcome) => {
                fired.extend((!outcome.figures.is_empty()).then_some((engine, outcome.checksum)));
                results.add((section.name, timers), engine, outcome);
            }
            Err(error) => results.fail(section.name, engine, &error.to_string()),
        }
    }
    compare(section, &fired, results);
}

/// Each engine has to fire what ours did.
fn compare(section: &Section, fired: &[(&str, u64)], results: &mut Results) {
    let ours = fired.iter().find(|(engine, _)| *engine == OURS);
    for (engine, _) in fired.iter().filter(|(_, sum)| ours.is_some_and(|ours| ours.1 != *sum)) {
        results.fail(section.name, engine, &format!("it did not fire what {OURS} did"));
    }
}

/// Starts this program, or its other build, for one run; the child writes one line of JSON.
fn ask(job: &Job, run: &Run) -> io::Result<Outcome> {
    let program = if run.is_here() { std::env::current_exe()? } else { other_build::program()? };
    let mut command = Command::new(program);
    command.arg("child").arg(serde_json::to_string(job)?);
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("its process ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures in this process, a child.
pub(crate) fn run_child(suite: &Suite, job: &Job) -> io::Result<ExitCode> {
    if suite.pinned {
        pin(0);
    }
    let section = suite.sections.get(job.section);
    let run = section.and_then(|section| section.runs.iter().find(|run| run.engine == job.engine));
    let run = run.ok_or_else(|| io::Error::other("there is no such run"))?;
    println!("{}", serde_json::to_string(&(run.measure)(&job.task))?);
    Ok(ExitCode::SUCCESS)
}

/// Returns the names of a suite's sections and engines.
fn names(suite: &Suite) -> BTreeSet<&'static str> {
    let of_section =
        |section: &'static Section| section.runs.iter().map(|run| run.engine).chain([section.name]);
    suite.sections.iter().flat_map(of_section).collect()
}
