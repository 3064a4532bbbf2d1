//! A client that is fast enough to load a server, and what can be seen of the server's process.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;

pub(crate) struct Client {
    /// One descriptor for both ways: there are loads of ten thousand clients.
    pub(crate) reader: BufReader<TcpStream>,
    line: Vec<u8>,
    last: Vec<u8>,
}

/// Appends a request.
pub(crate) fn request(out: &mut Vec<u8>, args: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        out.extend_from_slice(format!("${}\r\n{arg}\r\n", arg.len()).as_bytes());
    }
}

impl Client {
    pub(crate) fn connect(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        let reader = BufReader::with_capacity(1 << 18, stream);
        Ok(Self { reader, line: Vec::new(), last: Vec::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    pub(crate) fn run(&mut self, args: &[&str]) -> Result<&[u8]> {
        let mut bytes = Vec::new();
        request(&mut bytes, args);
        self.send(&bytes)?;
        self.reply()
    }

    /// The last string of the next reply. An error is an error. Nothing is allocated: a client that
    /// takes longer than the server would measure itself.
    pub(crate) fn reply(&mut self) -> Result<&[u8]> {
        let mut missing = 1;
        while missing > 0 {
            missing -= 1;
            self.line.clear();
            if self.reader.read_until(b'\n', &mut self.line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let text = std::str::from_utf8(&self.line[1..]).map_err(Error::other)?.trim_end();
            let number = || text.parse::<i64>().map_err(Error::other);
            match self.line[0] {
                b'-' => return Err(Error::other(text)),
                b'*' => missing += number()?,
                b'$' if number()? >= 0 => {
                    let len = number()? as usize;
                    self.last.resize(len + 2, 0);
                    self.reader.read_exact(&mut self.last)?;
                    self.last.truncate(len);
                }
                _ => {
                    self.last.clear();
                    self.last.extend_from_slice(text.as_bytes());
                }
            }
        }
        Ok(&self.last)
    }

    /// Sends many requests in pipelines of 100, and reads the replies.
    pub(crate) fn pipeline(&mut self, requests: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let mut requests = requests.peekable();
        while requests.peek().is_some() {
            let batch: Vec<_> = requests.by_ref().take(100).collect();
            self.send(&batch.concat())?;
            batch.iter().try_for_each(|_| self.reply().map(|_| ()))?;
        }
        Ok(())
    }
}

/// The wall clock, in microseconds.
pub(crate) fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}

/// The resident memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("valid bounds")
}

/// Prints percentiles of microseconds, in milliseconds.
pub(crate) fn print(name: &str, values: &Histogram<u64>) {
    let at = |quantile: f64| values.value_at_quantile(quantile) as f64 / 1e3;
    let (p50, p99, p999, max) = (at(0.5), at(0.99), at(0.999), values.max() as f64 / 1e3);
    println!("{name}: p50 {p50:.3} ms, p99 {p99:.3}, p99.9 {p999:.3}, max {max:.3}, of {}", values.len());
}

pub(crate) fn sleep_until(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros.saturating_sub(now_micros())));
}
