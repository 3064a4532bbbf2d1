//! A thousand keys that are due at one instant, beside others that are not: how many `expired` events reach a subscriber
//! within half a minute, and how late they are. For a cache or a Redis that is already running; `compare.sh` starts both.
//!
//! ```text
//! cargo bench -p cache --bench expiry -- --port 6379 --keys 100000
//! ```

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Parser;

/// Keys that are due together.
const DUE: u64 = 1_000;
/// How long before that they are set, and how long events may come afterwards.
const AHEAD: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(30);
/// Requests that are sent before their replies are read.
const PIPELINE: usize = 100;

/// How late keys expire in a server that is already running
#[derive(Clone, Debug, Parser)]
#[command(name = "expiry")]
struct Args {
    #[arg(long)]
    port: u16,
    /// Keys that are not due
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// What cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn connect(port: u16) -> Result<Self> {
        TcpStream::connect(("127.0.0.1", port)).map(|stream| Self(BufReader::new(stream)))
    }

    fn run(&mut self, args: &[&str]) -> Result<String> {
        self.0.get_mut().write_all(&request(args))?;
        self.reply()
    }

    /// The last string of the next reply. An error is an error.
    fn reply(&mut self) -> Result<String> {
        let (mut missing, mut last) = (1, String::new());
        while missing > 0 {
            missing -= 1;
            let mut line = String::new();
            if self.0.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let (kind, text) = line.trim_end().split_at(1);
            match (kind, text.parse::<u64>()) {
                ("-", _) => return Err(Error::other(text)),
                ("*", Ok(elements)) => missing += elements,
                ("$", Ok(len)) => {
                    let mut bytes = vec![0; len as usize + 2];
                    self.0.read_exact(&mut bytes)?;
                    last = String::from_utf8_lossy(&bytes[..len as usize]).into_owned();
                }
                _ => last = text.to_owned(),
            }
        }
        Ok(last)
    }

    fn pipeline(&mut self, requests: &[Vec<u8>]) -> Result<()> {
        for some in requests.chunks(PIPELINE) {
            self.0.get_mut().write_all(&some.concat())?;
            some.iter().try_for_each(|_| self.reply().map(drop))?;
        }
        Ok(())
    }
}

fn request(args: &[&str]) -> Vec<u8> {
    let args = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect::<Vec<_>>();
    format!("*{}\r\n{}", args.len(), args.concat()).into_bytes()
}

/// The wall clock.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn main() -> Result<()> {
    let Args { port, keys, .. } = Args::parse();
    let mut client = Client::connect(port)?;
    client.run(&["FLUSHALL"])?;
    client.run(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?;
    let later = |key| request(&["SET", &format!("later:{key}"), "v", "EX", "3600"]);
    client.pipeline(&(0..keys).map(later).collect::<Vec<_>>())?;
    let mut listener = Client::connect(port)?;
    listener.run(&["SUBSCRIBE", "__keyevent@0__:expired"])?;
    let due = Duration::from_millis((now() + AHEAD).as_millis() as u64);
    let at = due.as_millis().to_string();
    let set = |key| request(&["SET", &format!("due:{key}"), "v", "PXAT", &at]);
    client.pipeline(&(0..DUE).map(set).collect::<Vec<_>>())?;
    let mut late = Vec::new();
    while late.len() < DUE as usize {
        let left = (due + PATIENCE).saturating_sub(now()).max(Duration::from_millis(1));
        listener.0.get_ref().set_read_timeout(Some(left))?;
        match listener.reply() {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            heard => _ = heard?,
        }
        late.push(now().saturating_sub(due).as_secs_f64() * 1e3);
    }
    let (p50, max) = (late.get(late.len() / 2).unwrap_or(&0.0), late.last().unwrap_or(&0.0));
    println!(
        "{keys} keys not due: {} of {DUE} events delivered, p50 {p50:.1} ms, max {max:.1} ms",
        late.len()
    );
    Ok(())
}
