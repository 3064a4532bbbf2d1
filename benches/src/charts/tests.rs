//! Every chart is drawn from figures as the programs write them, and has what it should.

use std::path::PathBuf;
use std::process;

use serde_json::json;

use super::*;

const HEADING: &str =
    "# Some report\n\n- machine: a fast one, 2 cores, linux\n- compiler: x\n- commit: abc123\n";

/// A directory of this test's own, gone when it ends.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("shardwheel-charts-{name}-{}", process::id())))
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.0.join(file)).expect(file)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn figure(section: &str, timers: Option<u64>, what: &str, engine: &str, median: f64) -> Value {
    json!({ "section": section, "timers": timers, "what": what, "engine": engine, "median": median })
}

#[test]
fn costs_have_a_line_for_each_engine() {
    let mut figures = Vec::new();
    for timers in [10_000, 1_000_000] {
        for (engine, cost) in [("shardwheel", 20.0), ("heap", 90.0), ("heap, no lock", 60.0)] {
            figures.push(figure(RANDOM, Some(timers), SCHEDULE, engine, cost));
        }
    }
    let scratch = Scratch::new("costs");
    let drawn = draw_charts(&scratch.0, &json!({ "heading": HEADING, "figures": figures })).unwrap();
    assert_eq!(drawn, ["schedule.svg"]);
    let svg = scratch.read("schedule.svg");
    for text in ["shardwheel", "heap, no lock", "10k", "1M", "ns a timer", "a fast one", "abc123"] {
        assert!(svg.contains(text), "{text}");
    }
    assert!(!svg.contains("compiler"));
    assert!(svg.contains("stroke-width=\"4\""), "ours is thick");
}

#[test]
fn threads_have_bars_where_there_are_figures() {
    let figures = [
        figure(TWO_CHURN, Some(0), ALONE, "shardwheel", 20.0),
        figure(TWO_CHURN, Some(0), APART, "shardwheel", 10.0),
        figure(TWO_CHURN, Some(0), SHARED, "shardwheel", 16.0),
        figure(TWO_CHURN, Some(0), ALONE, "tree, no lock", 40.0),
        figure(TWO_CHURN, Some(0), APART, "tree, no lock", 20.0),
    ];
    let scratch = Scratch::new("threads");
    let drawn = draw_charts(&scratch.0, &json!({ "heading": HEADING, "figures": figures })).unwrap();
    assert_eq!(drawn, ["two-churn-0.svg"]);
    let svg = scratch.read("two-churn-0.svg");
    assert_eq!(svg.matches("(2.00 ×)").count(), 2, "two engines scale");
    assert_eq!(svg.matches("(1.25 ×)").count(), 1, "one can be shared");
    assert!(svg.contains("tree, no lock") && svg.contains("millions of pairs of schedule + cancel a second"));
}

#[test]
fn lateness_is_a_curve_and_nothing_is_left_out() {
    let late = |engine| LATE.map(|(share, row)| figure(LIVE_FIRE, None, row, engine, 1000.0 * share));
    let figures = [late("shardwheel"), late("shardwheel sleeps"), late("tokio")].concat();
    let scratch = Scratch::new("late");
    let drawn = draw_charts(&scratch.0, &json!({ "heading": HEADING, "figures": figures })).unwrap();
    assert_eq!(drawn, ["late-fire.svg"]);
    let svg = scratch.read("late-fire.svg");
    assert!(["90", "99", "99.9", "99.99", "99.999"].iter().all(|tick| svg.contains(&format!("\n{tick}\n"))));
    let circles = svg.matches("<circle").count();
    assert_eq!(circles, 3 * LATE.len());
}

#[test]
fn engines_have_colours_of_their_own() {
    let names = ["shardwheel", "heap", "bare heap", "tree", "DelayQueue", "a", "b", "c", "d", "e"];
    let figures = names.map(|engine| figure(RANDOM, Some(1), SCHEDULE, engine, 1.0));
    let measured = Measured::read(&json!({ "heading": HEADING, "figures": figures })).unwrap();
    let palette = Palette::of(&measured);
    for (nth, engine) in names.iter().enumerate() {
        let others = &names[nth + 1..];
        assert!(others.iter().all(|other| palette.style(other).colour != palette.style(engine).colour));
    }
    let (locked, unlocked) = (palette.style("heap"), palette.style("heap, no lock"));
    assert!(locked.colour == unlocked.colour && !locked.is_dashed && unlocked.is_dashed);
}

#[test]
fn other_files_are_refused() {
    let scratch = Scratch::new("other");
    assert!(draw_charts(&scratch.0, &json!({ "heading": HEADING })).is_err());
    assert!(!scratch.0.exists());
}
