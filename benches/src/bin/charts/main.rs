//! Draws the charts of figures that `peers` and `live` have written to files, without measuring anything anew.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use shardwheel_benches::draw_charts;

const USAGE: &str = "charts DIR FILE...\n\n\
                     DIR      where the charts go\n\
                     FILE...  what `peers --json` and `live --json` have written";

fn main() -> ExitCode {
    let words = env::args().skip(1).collect::<Vec<_>>();
    let [dir, files @ ..] = &words[..] else { return refuse() };
    if files.is_empty() {
        return refuse();
    }
    for file in files {
        match draw(Path::new(dir), file) {
            Ok(drawn) if drawn.is_empty() => eprintln!("{file}: none of its figures have a chart"),
            Ok(drawn) => drawn.iter().for_each(|chart| println!("{chart}")),
            Err(error) => {
                eprintln!("{file}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn refuse() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

fn draw(dir: &Path, file: &str) -> Result<Vec<String>, Box<dyn Error>> {
    draw_charts(dir, &serde_json::from_slice(&fs::read(file)?)?)
}
