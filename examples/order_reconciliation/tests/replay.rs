//! The program, run within this process by its arguments, its streams and its exit code.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use order_reconciliation::Streams;

/// What one run of the program left.
struct Run {
    code: u8,
    out: String,
    err: String,
}

fn run_with_input(args: &[&str], mut input: &[u8]) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { input: &mut input, out: &mut out, err: &mut err };
    let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
    let code = order_reconciliation::run(args, &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    Run { code, out: text(out), err: text(err) }
}

fn run(args: &[&str]) -> Run {
    run_with_input(args, b"")
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

/// A directory for one test, removed at its end.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("order-reconciliation-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect("a temporary file");
        self.file(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
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
    let directory = Directory::new(test);
    let orders = directory.write("o.csv", &format!("{ORDERS_HEADER}{orders}"));
    let payments = directory.write("p.csv", &format!("{PAYMENTS_HEADER}{payments}"));
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
fn both_engines_run_and_the_last_line_compares_them() {
    let both = report(&["--count", "2000"]);
    assert!(both.out.contains("pass 2 of 2") && both.out.contains("both engines end all orders alike"));
    assert!(both.out.contains("    shardwheel          heap\n"), "{}", both.out);
    let last = both.out.lines().last().expect("a line");
    assert!(last.starts_with("shardwheel: ") && last.contains("; the heap: "), "{last}");
}

#[test]
fn a_sample_that_is_written_and_read_again_gives_the_totals_of_the_generated_data_set() {
    let directory = Directory::new("sample");
    let data_set = ["--count", "5000", "--seed", "5"];
    let sample = directory.file("sample");
    let written = run(&[&data_set[..], &["--write-sample", &sample]].concat());
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert!(written.out.contains("5000 orders and ") && written.out.contains(&sample), "{}", written.out);
    let (orders, payments) = (format!("{sample}/orders.csv"), format!("{sample}/payments.csv"));
    let expected = report(&data_set);
    let from = |orders: &str, payments: &str, stdin: &[u8]| {
        let read = run_with_input(&["--orders", orders, "--payments", payments], stdin);
        assert_eq!(read.totals(), expected.totals());
    };
    from(&orders, &payments, b"");
    from("-", &payments, &fs::read(&orders).expect("the sample"));
    from(&orders, "-", &fs::read(&payments).expect("the sample"));
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
fn times_may_be_unsorted_far_apart_and_far_from_zero() {
    let year = 31_536_000_000_u64;
    let orders = format!("1,a,1,10,{}\n2,a,1,10,{year}\n3,a,1,10,{}\n", 9 * year, 999 * year);
    let payments = format!("1,10,{}\n3,10,{}\n", 9 * year + 1, 999 * year - 1);
    let report = run_files("times", &orders, &payments, &[]);
    report.assert_ok();
    assert_eq!((report.count("    paid early (cancelled)"), report.count("    released")), (2, 1));
}

#[test]
fn files_may_have_no_records_and_payments_may_be_missing() {
    let directory = Directory::new("empty");
    let header = directory.write("h.csv", ORDERS_HEADER);
    assert_eq!(report(&["--orders", &header]).count("orders read"), 0);
    let orders = directory.write("o.csv", &format!("{ORDERS_HEADER}1,bolt,1,100,0\n"));
    assert_eq!(report(&["--orders", &orders]).count("    released"), 1);
}

#[test]
fn wrong_arguments_and_unreadable_files_are_exit_code_2() {
    let directory = Directory::new("usage");
    let payments = directory.write("p.csv", PAYMENTS_HEADER);
    let missing = directory.file("missing.csv");
    let file = directory.write("file", "");
    for (args, named) in [
        (&["--check-after", "soon"][..], "\"soon\": a duration is"),
        (&["--check-after", "0s"], "\"0s\": a check comes after 1ms"),
        (&["--count", "0"], "\"0\""),
        (&["--producers", "65"], "from 1 to 64"),
        (&["--cuont", "7"], "--cuont"),
        (&["--count"], "--count"),
        (&["replay"], "replay"),
        (&["--payments", "p.csv"], "--payments needs --orders"),
        (&["--orders", "-", "--payments", "-"], "standard input"),
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
