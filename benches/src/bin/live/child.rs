//! A process for each run, so that no engine is left with the threads, the memory or the processor time of
//! another: the program starts itself again, and the child says what it measured in one line of JSON.

use std::io;
use std::process::{Command, Stdio};

use shardwheel_benches::CHILD;

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
    let mut command = Command::new(std::env::current_exe()?);
    command.args([CHILD, section.name, run.engine]).args(args.for_child());
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("its process ended with {}", output.status)));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
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
