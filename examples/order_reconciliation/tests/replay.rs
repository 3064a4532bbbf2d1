//! The program, run within this process by its arguments, its streams and its exit code.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use order_reconciliation::Streams;

/// What one run of the program left.
struct Run {
    code: u8,
    out: String,
    err: String,
}

fn run(args: &[&str]) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { out: &mut out, err: &mut err };
    let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
    let code = order_reconciliation::run(args, &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    Run { code, out: text(out), err: text(err) }
}

impl Run {
    /// No line was bad, and all identities hold.
    fn assert_ok(&self) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        assert!(self.out.lines().filter(|line| line.starts_with("holds ")).count() > 10, "{}", self.out);
    }

    /// What the report says about orders and payments, without engines and times.
    fn totals(&self) -> &str {
        self.out.split("\n\n").nth(1).unwrap_or_else(|| panic!("{}{}", self.out, self.err))
    }

    /// The count in the row that begins so.
    fn count(&self, row: &str) -> u64 {
        let count = self.totals().lines().find_map(|line| line.strip_prefix(row)?.split_whitespace().next());
        let count = count.unwrap_or_else(|| panic!("{row} in\n{}", self.out));
        count.replace(',', "").parse().expect("a count")
    }
}

/// The path of a file of one test.
fn path(test: &str, name: &str) -> String {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&directory).expect("a directory");
    directory.join(name).display().to_string()
}

fn write(test: &str, name: &str, text: &str) -> String {
    let path = path(test, name);
    fs::write(&path, text).expect("a file");
    path
}

/// A run in which all identities hold.
fn report(args: &[&str]) -> Run {
    let run = run(args);
    run.assert_ok();
    run
}

const ORDERS_HEADER: &str = "order_id,item,quantity,amount_cents,placed_at_ms\n";
const PAYMENTS_HEADER: &str = "order_id,amount_cents,paid_at_ms\n";

/// Runs the program on the records of two files.
fn run_files(test: &str, orders: &str, payments: &str, more: &[&str]) -> Run {
    let orders = write(test, "o.csv", &format!("{ORDERS_HEADER}{orders}"));
    let payments = write(test, "p.csv", &format!("{PAYMENTS_HEADER}{payments}"));
    run(&[&["--orders", &orders, "--payments", &payments], more].concat())
}

#[test]
fn every_kind_of_order_occurs_and_the_counts_follow_the_shares() {
    let report = report(&["--count", "20000"]);
    assert_eq!((report.count("orders read"), report.count("  placed")), (20_000, 20_000));
    assert!((14_500..15_500).contains(&report.count("    paid early (cancelled)")));
    assert!((1_700..2_300).contains(&report.count("    confirmed")));
    assert!((2_700..3_300).contains(&report.count("    released")));
    assert!((800..1_200).contains(&report.count("  returned")));
    assert!(report.out.contains("both engines end all orders alike"));
    let last = report.out.lines().last().expect("a line");
    assert!(last.starts_with("shardwheel: ") && last.contains("; the heap: "), "{last}");
}

#[test]
fn the_outcome_is_the_same_for_both_engines_and_any_number_of_threads() {
    // Ten items and little stock: many orders depend on what the checks of others have taken back.
    let scarce = ["--count", "20000", "--items", "10", "--stock", "4000", "--seed", "7"];
    let with = |more: &[&str]| report(&[&scarce, more].concat());
    let expected = with(&["--producers", "1"]);
    assert!(expected.count("  sold out") > 1_000, "{}", expected.out);
    for producers in ["2", "3", "8"] {
        assert_eq!(with(&["--producers", producers]).totals(), expected.totals());
    }
}

#[test]
fn a_sample_that_is_written_and_read_again_gives_the_totals_of_the_generated_data_set() {
    let data_set = ["--count", "5000", "--seed", "5"];
    let sample = path("sample", "files");
    let written = run(&[&data_set[..], &["--write-sample", &sample]].concat());
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert!(written.out.contains("5000 orders and ") && written.out.contains(&sample), "{}", written.out);
    let (orders, payments) = (format!("{sample}/orders.csv"), format!("{sample}/payments.csv"));
    let expected = report(&data_set);
    assert_eq!(run(&["--orders", &orders, "--payments", &payments]).totals(), expected.totals());
}

#[test]
fn bad_lines_are_reported_with_number_and_reason_counted_and_skipped() {
    let orders = "1,bolt,1,100,0\nnonsense\n1,nut,1,5,0\n\n2,nut,0,5,0\n3,nut,1,200,9\n";
    let payments = "1,100,60000\n9,100,5\n3,-200,10\n3,200\n";
    let report = run_files("bad", orders, payments, &[]);
    assert_eq!(report.code, 0, "bad lines are no broken identity");
    assert_eq!((report.count("orders read"), report.count("payments read")), (5, 4));
    assert_eq!(report.count("  bad lines"), 3);
    assert_eq!((report.count("    paid early (cancelled)"), report.count("    released")), (1, 1));
    let expected = [
        "o.csv: line 3: its number of columns is 1, not 5",
        "o.csv: line 4: order 1 was placed on an earlier line",
        "o.csv: line 6: quantity is \"0\"",
        "p.csv: line 3: there is no order 9",
        "p.csv: line 4: amount_cents is \"-200\"",
        "p.csv: line 5: its number of columns is 2, not 3",
    ];
    assert_eq!(report.err.lines().count(), expected.len(), "{}", report.err);
    for (line, expected) in report.err.lines().zip(expected) {
        assert!(line.contains(&format!("/{expected}")), "{line}");
    }
}

#[test]
fn wrong_arguments_and_unreadable_files_are_exit_code_2() {
    let payments = write("usage", "p.csv", PAYMENTS_HEADER);
    let missing = path("usage", "missing.csv");
    let file = write("usage", "file", "");
    for (args, named) in [
        (&["--check-after", "soon"][..], "\"soon\": a duration is"),
        (&["--check-after", "0s"], "\"0s\": a check comes after 1ms"),
        (&["--count", "0"], "\"0\""),
        (&["--producers", "65"], "from 1 to 64"),
        (&["--cuont", "7"], "--cuont"),
        (&["--count"], "--count"),
        (&["replay"], "replay"),
        (&["--payments", "p.csv"], "--payments needs --orders"),
        (&["--orders", &missing], "missing.csv"),
        (&["--orders", &payments], "the first line must be order_id,item"),
        (&["--orders", &file], "the first line must be order_id,item"),
        (&["--orders", env!("CARGO_MANIFEST_DIR")], "directory"),
        (&["--write-sample", &file], "file"),
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(named), "{args:?}: {}", run.err);
    }
    assert!(Path::new(&file).is_file(), "nothing is written in its place");
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("--check-after") && help.err.is_empty());
}
