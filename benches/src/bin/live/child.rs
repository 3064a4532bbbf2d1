//! A process for each run, so that no engine is left with the threads, the memory or the processor time of
//! another: the program starts itself again, and the child says what it measured in one line of JSON.

use std::io;

use shardwheel_benches::ask_child;

use crate::args::Args;
use crate::sections::{Figures, Run, Section};

/// Measures in this process, a child.
pub(crate) fn run(run: &Run, args: &Args) {
    println!("{}", line(&(run.measure)(args)));
}

/// Has a child process measure; says why on the terminal and returns `None` where it could not.
pub(crate) fn ask(section: &Section, run: &Run, args: &Args) -> Option<Figures> {
    match answer(section, run, args) {
        Ok(figures) => Some(figures),
        Err(error) => {
            eprintln!("{} with {} was not measured: {error}", section.name, run.engine);
            None
        }
    }
}

fn answer(section: &Section, run: &Run, args: &Args) -> io::Result<Figures> {
    let names = [section.name, run.engine].map(str::to_owned);
    Ok(serde_json::from_slice(&ask_child(names.into_iter().chain(args.for_child()))?)?)
}

fn line(figures: &Figures) -> String {
    serde_json::to_string(figures).expect("names and numbers can be written as JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_back_in_their_order() {
        let figures = vec![("µs".to_owned(), 1.25), ("a".to_owned(), 0.0)];
        let line = line(&figures);
        assert!(!line.contains('\n'));
        assert_eq!(serde_json::from_str::<Figures>(&line).unwrap(), figures);
    }
}
