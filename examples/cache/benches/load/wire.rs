//! A client that is fast enough to load a server, and what can be seen of the server's process.

use std::io::{BufRead, BufReader, Error, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    reader: BufReader<TcpStream>,
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
        Ok(Self { reader: BufReader::with_capacity(1 << 18, stream.try_clone()?), stream })
    }

    pub(crate) fn run(&mut self, args: &[&str]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        request(&mut bytes, args);
        self.stream.write_all(&bytes)?;
        self.reply()
    }

    /// The last string of the next reply. An error is an error.
    pub(crate) fn reply(&mut self) -> Result<Vec<u8>> {
        let mut line = Vec::new();
        if self.reader.read_until(b'\n', &mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&line[1..]).trim().to_owned();
        let number = || text.parse::<i64>().map_err(Error::other);
        match line[0] {
            b'-' => Err(Error::other(text)),
            b'$' if number()? >= 0 => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(bytes)
            }
            b'*' => {
                let mut last = Vec::new();
                for _ in 0..number()? {
                    last = self.reply()?;
                }
                Ok(last)
            }
            _ => Ok(text.into_bytes()),
        }
    }

    /// Sends many requests in pipelines of 100, and reads the replies.
    pub(crate) fn pipeline(&mut self, requests: impl Iterator<Item = Vec<u8>>) -> Result<()> {
        let mut requests = requests.peekable();
        while requests.peek().is_some() {
            let batch: Vec<_> = requests.by_ref().take(100).collect();
            self.stream.write_all(&batch.concat())?;
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
