//! What the tests share: the program, run within this process by its arguments, its streams and its
//! exit code; and files.

#![allow(dead_code, reason = "each test file uses a part")]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use order_reconciliation::Streams;

/// What one run of the program left.
pub(crate) struct Run {
    pub(crate) code: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run_with_input(args: &[&str], mut input: &[u8]) -> Run {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams { input: &mut input, out: &mut out, err: &mut err };
    let args = ["order-reconciliation"].iter().chain(args).map(OsString::from);
    let code = order_reconciliation::run(args, &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the program writes text");
    Run { code, out: text(out), err: text(err) }
}

pub(crate) fn run(args: &[&str]) -> Run {
    run_with_input(args, b"")
}

impl Run {
    /// No line was bad, and all identities hold.
    pub(crate) fn assert_ok(&self) {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        assert!(self.out.lines().filter(|line| line.starts_with("holds ")).count() > 10, "{}", self.out);
    }

    /// What the report says about orders and payments, without engines and times.
    pub(crate) fn totals(&self) -> &str {
        self.out.split("\n\n").nth(1).unwrap_or_else(|| panic!("{}{}", self.out, self.err))
    }

    fn figures(&self, row: &str, nth: usize) -> Vec<u64> {
        let line = self.totals().lines().filter_map(|line| line.strip_prefix(row)).nth(nth);
        let line = line.unwrap_or_else(|| panic!("{row} in\n{}", self.out));
        let figure = |word: &str| word.replace([',', '.'], "").parse().ok();
        line.split_whitespace().filter_map(figure).collect()
    }

    /// The count in the row that begins so.
    pub(crate) fn count(&self, row: &str) -> u64 {
        self.figures(row, 0)[0]
    }

    pub(crate) fn cents(&self, row: &str) -> u64 {
        self.figures(row, 0)[1]
    }

    /// The bad lines of orders and of payments.
    pub(crate) fn bad_lines(&self) -> [u64; 2] {
        [0, 1].map(|nth| self.figures("  bad lines", nth)[0])
    }
}

/// A directory for one test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("order-reconciliation-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect("a temporary file");
        self.file(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
