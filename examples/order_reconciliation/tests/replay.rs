//! `replay`, run within this process by its arguments, its streams and its exit code.

mod support;

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use order_reconciliation::Streams;
use serde_json::Value;

use support::Directory;

/// What one run of the program left.
struct Run {
    code: u8,
    out: String,
    err: String,
}

impl Run {
    /// The report of the first engine. Where another one ran as well, its totals are the same.
    fn json(&self) -> Value {
        let reports = serde_json::from_str::<Vec<Value>>(&self.out);
        let reports = reports.unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err));
        assert!(reports.iter().all(|report| totals(report) == totals(&reports[0])), "{reports:#?}");
        reports[0].clone()
    }
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

/// The report of a run in which all identities hold.
fn report(args: &[&str]) -> Value {
    let run = run(&[args, &["--json"]].concat());
    let json = run.json();
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{json:#}");
    let identities = json["identities"].as_array().expect("a list");
    assert!(identities.len() > 10 && identities.iter().all(|identity| identity["holds"] == true), "{json:#}");
    json
}

/// What a report says about orders and payments, without engines and times.
fn totals(report: &Value) -> Value {
    let fields = ["orders", "payments", "paid_early", "confirmed", "released", "cents"];
    fields.iter().map(|&field| (field.to_owned(), report[field].clone())).collect()
}

fn count(report: &Value, field: &str) -> u64 {
    report.pointer(field).and_then(Value::as_u64).unwrap_or_else(|| panic!("{field} in {report:#}"))
}

const ORDERS_HEADER: &str = "order_id,item,quantity,amount_cents,placed_at_ms\n";
const PAYMENTS_HEADER: &str = "order_id,amount_cents,paid_at_ms\n";
const HALF_AN_HOUR: u64 = 1_800_000;

#[test]
fn every_kind_of_order_occurs_and_the_counts_follow_the_shares() {
    let report = report(&["--count", "20000", "--unpaid", "0.2", "--mismatch", "0.1", "--in-parts", "0.3"]);
    assert_eq!(count(&report, "/orders/read"), 20_000);
    assert_eq!(count(&report, "/orders/placed"), 20_000);
    assert!((7_500..8_500).contains(&count(&report, "/paid_early")));
    assert!((5_500..6_500).contains(&count(&report, "/confirmed")));
    assert!((5_500..6_500).contains(&count(&report, "/released")));
    assert!((1_500..2_500).contains(&count(&report, "/payments/returned")));
    assert!(report["lateness"].is_null() && report["engine"] == "shardwheel" && report["clock"] == "virtual");
}

#[test]
fn the_outcome_is_the_same_for_both_engines_and_any_number_of_threads() {
    // Ten items and little stock: many orders depend on what the checks of others have taken back.
    let scarce = ["--count", "20000", "--items", "10", "--stock", "4000", "--seed", "7"];
    let with = |more: &[&str]| totals(&report(&[&scarce, more].concat()));
    let expected = with(&["--producers", "1"]);
    assert!(count(&expected, "/orders/sold_out") > 1_000, "{expected:#}");
    for producers in ["2", "3", "8"] {
        assert_eq!(with(&["--producers", producers]), expected);
        assert_eq!(with(&["--producers", producers, "--shards", "1"]), expected);
        assert_eq!(with(&["--producers", producers, "--engine", "heap"]), expected);
    }
}

/// Without `--engine` both run, twice by the virtual clock; the last line compares them.
#[test]
fn both_engines_run_and_the_last_line_compares_them() {
    let both = run(&["--count", "2000"]);
    assert_eq!(both.code, 0, "{}", both.err);
    assert!(both.out.contains("pass 2 of 2") && both.out.contains("both engines end all orders alike"));
    let last = both.out.lines().last().expect("a line");
    assert!(last.starts_with("shardwheel: ") && last.contains("; the heap: "), "{last}");
    let json = run(&["--count", "2000", "--json"]).out;
    let engines = serde_json::from_str::<Vec<Value>>(&json).expect("a list");
    assert_eq!([&engines[0]["engine"], &engines[1]["engine"]], ["shardwheel", "heap"]);
    for one in [&["--engine", "heap"][..], &["--clock", "real", "--check-after", "50ms"]] {
        let one = run(&[&["--count", "50"], one].concat());
        assert!(one.code == 0 && !one.out.contains("; the heap: "), "{}{}", one.out, one.err);
    }
}

#[test]
fn stock_that_a_check_takes_back_is_sold_again() {
    let directory = Directory::new("restock");
    let later = HALF_AN_HOUR + 10_000;
    let orders = format!("{ORDERS_HEADER}1,bolt,1,100,0\n2,bolt,1,100,1\n3,bolt,1,100,{later}\n");
    let payments = format!("{PAYMENTS_HEADER}3,100,{later}\n2,100,2\n");
    let (orders, payments) = (directory.write("o.csv", &orders), directory.write("p.csv", &payments));
    for engine in ["shardwheel", "heap"] {
        let files = ["--orders", &orders, "--payments", &payments, "--stock", "1", "--engine", engine];
        let report = report(&files);
        assert_eq!(count(&report, "/orders/sold_out"), 1, "order 2");
        assert_eq!(count(&report, "/released"), 1, "order 1");
        assert_eq!(count(&report, "/paid_early"), 1, "order 3");
        assert_eq!(count(&report, "/payments/returned"), 1, "of order 2");
    }
}

#[test]
fn a_sample_that_is_written_and_read_again_gives_the_totals_of_the_generated_data_set() {
    let directory = Directory::new("sample");
    let data_set = ["--count", "5000", "--seed", "5", "--unpaid", "0.3"];
    let sample = directory.file("sample");
    let written = run(&[&data_set[..], &["--write-sample", &sample]].concat());
    assert_eq!((written.code, written.err.as_str()), (0, ""));
    assert!(written.out.contains("5000 orders") && written.out.contains("payments.csv"), "{}", written.out);
    let (orders, payments) = (format!("{sample}/orders.csv"), format!("{sample}/payments.csv"));
    let expected = totals(&report(&data_set));
    assert_eq!(totals(&report(&["--orders", &orders, "--payments", &payments])), expected);

    let from_stdin =
        |args: &[&str], file: &str| run_with_input(args, &fs::read(file).expect("the sample")).json();
    let args = ["--json", "--orders", "-", "--payments", &payments];
    assert_eq!(totals(&from_stdin(&args, &orders)), expected);
    let args = ["--json", "--orders", &orders, "--payments", "-"];
    assert_eq!(totals(&from_stdin(&args, &payments)), expected);
}

#[test]
fn bad_lines_are_reported_with_number_and_reason_counted_and_skipped() {
    let directory = Directory::new("bad");
    let orders =
        format!("{ORDERS_HEADER}1,bolt,1,100,0\nnonsense\n1,nut,1,5,0\n\n2,nut,0,5,0\n3,nut,1,200,9\n");
    let payments = format!("{PAYMENTS_HEADER}1,100,60000\n9,100,5\n3,-200,10\n3,200\n");
    let (orders, payments) = (directory.write("o.csv", &orders), directory.write("p.csv", &payments));
    let run = run(&["--orders", &orders, "--payments", &payments, "--json"]);
    assert_eq!(run.code, 0, "bad lines are no broken identity");
    let report = run.json();
    assert_eq!((count(&report, "/orders/read"), count(&report, "/orders/bad")), (5, 3));
    assert_eq!((count(&report, "/payments/read"), count(&report, "/payments/bad")), (4, 3));
    assert_eq!((count(&report, "/paid_early"), count(&report, "/released")), (1, 1));
    let reported = run.err.lines().collect::<Vec<_>>();
    let expected = [
        (&orders, "line 3: its number of columns is 1, not 5"),
        (&orders, "line 4: order \"1\" was placed on an earlier line"),
        (&orders, "line 6: quantity is \"0\""),
        (&payments, "line 3: there is no order \"9\""),
        (&payments, "line 4: amount_cents is \"-200\""),
        (&payments, "line 5: its number of columns is 2, not 3"),
    ];
    assert_eq!(reported.len(), expected.len(), "{reported:#?}");
    for (line, (file, reason)) in reported.iter().zip(expected) {
        assert!(line.starts_with(&format!("{file}: {reason}")), "{line}");
    }
}

#[test]
fn payments_are_judged_by_their_date() {
    let directory = Directory::new("dates");
    let orders = format!(
        "{ORDERS_HEADER}in-time,a,1,10,5\nlate,b,1,20,5\nbefore,c,1,30,5\nparts,d,1,40,5\nfree,e,1,0,5\n"
    );
    let (due, late) = (HALF_AN_HOUR + 5, HALF_AN_HOUR + 6);
    let payments = format!(
        "{PAYMENTS_HEADER}in-time,10,{due}\nlate,20,{late}\nbefore,30,0\nparts,15,{due}\nparts,25,9\n"
    );
    let (orders, payments) = (directory.write("o.csv", &orders), directory.write("p.csv", &payments));
    let report = report(&["--orders", &orders, "--payments", &payments]);
    assert_eq!(count(&report, "/cents/paid_early"), 10 + 30);
    assert_eq!(count(&report, "/cents/released"), 20);
    assert_eq!(
        (count(&report, "/cents/confirmed"), count(&report, "/confirmed")),
        (40, 2),
        "what is free is paid"
    );
}

#[test]
fn times_may_be_unsorted_far_apart_and_far_from_zero() {
    let directory = Directory::new("times");
    let year = 31_536_000_000_u64;
    let orders = format!("{ORDERS_HEADER}1,a,1,10,{}\n2,a,1,10,{year}\n3,a,1,10,{}\n", 9 * year, 999 * year);
    let payments = format!("{PAYMENTS_HEADER}1,10,{}\n3,10,{}\n", 9 * year + 1, 999 * year - 1);
    let (orders, payments) = (directory.write("o.csv", &orders), directory.write("p.csv", &payments));
    for engine in ["shardwheel", "heap"] {
        let report = report(&["--orders", &orders, "--payments", &payments, "--engine", engine]);
        assert_eq!((count(&report, "/paid_early"), count(&report, "/released")), (2, 1));
    }
}

#[test]
fn files_may_have_no_records_and_payments_may_be_missing() {
    let directory = Directory::new("empty");
    let header = directory.write("h.csv", ORDERS_HEADER);
    assert_eq!(count(&report(&["--orders", &header]), "/orders/read"), 0);
    assert_eq!(count(&report(&["--orders", &header, "--clock", "real"]), "/orders/read"), 0);
    let orders = directory.write("o.csv", &format!("{ORDERS_HEADER}1,bolt,1,100,0\n"));
    assert_eq!(count(&report(&["--orders", &orders]), "/released"), 1);
}

/// The payments come well before or well after the check, so that the outcome is that of the
/// virtual clock.
#[test]
fn real_time_gives_the_same_totals_and_says_how_late_checks_were() {
    let data_set = ["--count", "300", "--seed", "2", "--unpaid", "0.4", "--check-after", "1s"];
    let expected = totals(&report(&data_set));
    let report = report(&[&data_set[..], &["--clock", "real"]].concat());
    assert_eq!(count(&report, "/orders/placed"), 300);
    assert_eq!(report["orders"], expected["orders"]);
    let lateness = |field: &str| report["lateness"][field].as_f64().expect("a number");
    assert!(lateness("p50_ms") <= lateness("p99_ms") && lateness("p99_ms") <= lateness("p999_ms"));
    assert!(lateness("p999_ms") <= lateness("max_ms") * 1.001);
}

/// What the `Timer` says of itself agrees with the books.
#[test]
fn real_time_on_shardwheel_reports_the_statistics_of_its_timer() {
    let real =
        ["--count", "400", "--seed", "3", "--check-after", "400ms", "--clock", "real", "--shards", "3"];
    let report = report(&real);
    let checked = count(&report, "/confirmed") + count(&report, "/released");
    assert_eq!(count(&report, "/timer/fired"), checked);
    assert_eq!(count(&report, "/timer/cancelled"), count(&report, "/paid_early"));
    for none in ["/timer/pending", "/timer/handed_back", "/timer/panics"] {
        assert_eq!(count(&report, none), 0, "{none}");
    }
    let shards = report["timer"]["shards"].as_array().expect("a list");
    assert_eq!(shards.iter().map(|shard| count(shard, "/fired")).sum::<u64>(), checked);
    assert_eq!(shards.len(), 3, "{report:#}");
    let late = |of: &Value, field: &str| of[field].as_f64().expect("a number");
    let (of_ticks, of_checks) = (&report["timer"]["lateness"], &report["lateness"]);
    // A tick never precedes its check: the job counts in microseconds, and rounds down.
    assert!(late(of_ticks, "max_ms") <= late(of_checks, "max_ms") + 0.001, "{report:#}");
    assert!(late(&report["timer"], "longest_callback_ms") > 0.0 && report["fire_ns"].is_null());
}

#[test]
fn the_table_has_the_statistics_of_the_timer() {
    let table = run(&["--count", "300", "--check-after", "300ms", "--clock", "real"]);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    for name in ["timer: fired", "longest callback", "lateness, of ticks", "shard 1: fired"] {
        assert!(table.out.contains(name), "{name} in\n{}", table.out);
    }
}

/// Half an hour of the files lasts as long as the check.
#[test]
fn files_are_played_faster_in_real_time() {
    let directory = Directory::new("real");
    let orders = format!("{ORDERS_HEADER}1,a,1,10,0\n2,b,1,20,60000\n");
    let payments = format!("{PAYMENTS_HEADER}1,10,60000\n");
    let (orders, payments) = (directory.write("o.csv", &orders), directory.write("p.csv", &payments));
    let report =
        report(&["--orders", &orders, "--payments", &payments, "--clock", "real", "--check-after", "500ms"]);
    assert_eq!((count(&report, "/orders/placed"), count(&report, "/payments/read")), (2, 1));
}

#[test]
fn the_table_names_all_that_is_asked_for() {
    let run = run(&["--count", "1000"]);
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    for name in [
        "placed",
        "paid early (cancelled)",
        "confirmed",
        "released",
        "reserved",
        "schedule",
        "cancel",
        "fire",
        "timers per second",
        "peak memory",
        "holds",
    ] {
        assert!(run.out.contains(name), "{name} in\n{}", run.out);
    }
    assert!(!run.out.contains("BROKEN"), "{}", run.out);
}

#[test]
fn wrong_arguments_and_unreadable_files_are_exit_code_2() {
    let directory = Directory::new("usage");
    let payments = directory.write("p.csv", PAYMENTS_HEADER);
    let missing = directory.file("missing.csv");
    let file = directory.write("file", "");
    for (args, named) in [
        (&["--check-after", "soon"][..], "'soon'"),
        (&["--unpaid", "2"], "'2'"),
        (&["--engine", "abacus"], "abacus"),
        (&["--orders", "-", "--payments", "-"], "standard input"),
        (&["--orders", &missing], "missing.csv"),
        (
            &["--orders", &payments],
            "the unknown column \"paid_at_ms\"; it must have the columns order_id,item",
        ),
        (&["--orders", &file], "the file is empty"),
        (&["--write-sample", &file], "file"),
    ] {
        let run = run(args);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{args:?}");
        assert!(run.err.contains(named), "{args:?}: {}", run.err);
    }
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.out.contains("--check-after") && help.err.is_empty());
}

#[test]
fn a_directory_is_no_file() {
    let run = run(&["--orders", &Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string()]);
    assert_eq!(run.code, 2, "{}", run.err);
}
