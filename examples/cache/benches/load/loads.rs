//! The loads.

use std::io::{ErrorKind, Read, Result};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::Args;
use crate::wire::{Client, histogram, now_micros, print, request, resident, sleep_until};

const SECOND: u64 = 1_000_000;
/// Keys that the GETs look at, which do not expire.
const LASTING: u64 = 100_000;
const MIB: f64 = 1024.0 * 1024.0;

fn megabytes(pid: u32) -> f64 {
    resident(pid) as f64 / MIB
}

fn set(args: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    request(&mut bytes, args);
    bytes
}

fn prepare(args: &Args) -> Result<Client> {
    let mut client = Client::connect(args.port)?;
    client.run(&["FLUSHALL"])?;
    client.pipeline((0..LASTING).map(|key| set(&["SET", &format!("lasting:{key}"), "0123456789"])))?;
    Ok(client)
}

/// GETs at a fixed rate until `ends`: a reply's time counts from when its request was due, so that a
/// server that stands still is seen to.
fn gets(args: &Args, ends: u64) -> Result<Histogram<u64>> {
    let (mut client, mut times) = (Client::connect(args.port)?, histogram());
    let step = 1_000.max(SECOND / args.rate);
    let each = (args.rate * step).div_ceil(SECOND);
    let (mut due, mut key) = (now_micros() + step, 0_u64);
    while due < ends {
        sleep_until(due);
        let mut bytes = Vec::new();
        for _ in 0..each {
            key = (key * 6_364_136_223_846_793_005 % LASTING + 7) % LASTING;
            request(&mut bytes, &["GET", &format!("lasting:{key}")]);
        }
        client.send(&bytes)?;
        for _ in 0..each {
            client.reply()?;
            times.saturating_record(now_micros() - due);
        }
        due += step;
    }
    Ok(times)
}

pub(crate) fn burst(args: &Args) -> Result<()> {
    let start = now_micros();
    let mut client = prepare(args)?;
    client.run(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?;
    let before = megabytes(args.pid);
    // Far enough ahead for all keys to be there, although each takes longer than one of those before.
    let loading = (now_micros() - start) * args.number / LASTING * 3;
    let first = (now_micros() + loading) / SECOND * SECOND + 4 * SECOND;
    let keys = (0..args.number).map(|key| {
        let at = first / 1_000 + key * 1_000 / args.number;
        set(&["SET", &format!("b:{at}:{key}"), "0123456789", "PXAT", &at.to_string()])
    });
    client.pipeline(keys)?;
    println!("memory: {before:.1} MiB before, {:.1} with the keys", megabytes(args.pid));
    assert!(now_micros() + SECOND < first, "the keys took too long");
    let listener = thread::spawn({
        let (port, number) = (args.port, args.number);
        move || listen(port, number)
    });
    // The seconds before the first deadline, and those in which the keys expire.
    sleep_until(first - 3 * SECOND);
    let calm = gets(args, first - SECOND / 2)?;
    let hot = gets(args, first + 2 * SECOND)?;
    print("GETs before", &calm);
    print("GETs while keys expire", &hot);
    println!("memory: {:.1} MiB a second after the last deadline", megabytes(args.pid));
    print("lateness of events", &listener.join().expect("the listener")?);
    client.run(&["CONFIG", "SET", "notify-keyspace-events", ""]).map(|_| ())
}

/// How long after its deadline each event comes. The time is that of the read which brings it: a client
/// that parses a million events a second measures itself.
fn listen(port: u16, number: u64) -> Result<Histogram<u64>> {
    let mut client = Client::connect(port)?;
    client.run(&["SUBSCRIBE", "__keyevent@0__:expired"])?;
    listen_until(&mut client, number, None)
}

/// The same, until all events have come, or a time is over.
fn listen_until(client: &mut Client, number: u64, ends: Option<Instant>) -> Result<Histogram<u64>> {
    const BEFORE: &[u8] = b"\r\nb:";
    let mut lateness = histogram();
    let (mut buffer, mut filled) = (vec![0; 1 << 20], 0);
    while lateness.len() < number {
        if let Some(ends) = ends {
            let left = ends.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            client.reader.get_ref().set_read_timeout(Some(left))?;
        }
        let len = match client.reader.read(&mut buffer[filled..]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            read => read?,
        };
        let (now, text, mut parsed) = (now_micros(), &buffer[..filled + len], 0);
        for found in memchr::memmem::find_iter(text, BEFORE) {
            let rest = &text[found + BEFORE.len()..];
            let Some(end) = rest.iter().position(|&byte| byte == b':') else { break };
            let at = std::str::from_utf8(&rest[..end]).ok().and_then(|at| at.parse::<u64>().ok());
            lateness.saturating_record(now.saturating_sub(at.expect("a deadline") * 1_000));
            parsed = found + BEFORE.len();
        }
        if len == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_within(parsed..filled + len, 0);
        filled = filled + len - parsed;
    }
    Ok(lateness)
}

/// Keys that are due at one instant, beside others that are not: how many events come within half a minute,
/// and how late.
pub(crate) fn expiry(args: &Args) -> Result<()> {
    const DUE: u64 = 1_000;
    const PATIENCE: Duration = Duration::from_secs(30);
    let mut client = Client::connect(args.port)?;
    client.run(&["FLUSHALL"])?;
    client.run(&["CONFIG", "SET", "notify-keyspace-events", "Ex"])?;
    client.pipeline((0..args.number).map(|key| set(&["SET", &format!("later:{key}"), "v", "EX", "3600"])))?;
    let mut listener = Client::connect(args.port)?;
    listener.run(&["SUBSCRIBE", "__keyevent@0__:expired"])?;
    let at = now_micros() / 1_000 + 1_000;
    let due = Instant::now() + Duration::from_secs(1);
    let keys = (0..DUE).map(|key| set(&["SET", &format!("b:{at}:{key}"), "v", "PXAT", &at.to_string()]));
    client.pipeline(keys)?;
    let lateness = listen_until(&mut listener, DUE, Some(due + PATIENCE))?;
    let (p50, max) = (lateness.value_at_quantile(0.5) as f64 / 1e3, lateness.max() as f64 / 1e3);
    let delivered = lateness.len();
    println!(
        "{} keys not due: {delivered} of {DUE} events delivered, p50 {p50:.1} ms, max {max:.1} ms",
        args.number
    );
    Ok(())
}

pub(crate) fn memory(args: &Args) -> Result<()> {
    let mut client = Client::connect(args.port)?;
    client.run(&["FLUSHALL"])?;
    thread::sleep(Duration::from_secs(2));
    let before = resident(args.pid);
    let seconds = |key: u64| (3_600 + key % 86_400).to_string();
    client.pipeline(
        (0..args.number)
            .map(|key| set(&["SET", &format!("key:{key:012}"), "0123456789", "EX", &seconds(key)])),
    )?;
    let each = (resident(args.pid) - before) as f64 / args.number as f64;
    println!(
        "{each:.1} bytes of resident memory a key, of {} keys of 16 bytes with values of 10",
        args.number
    );
    Ok(())
}

pub(crate) fn churn(args: &Args) -> Result<()> {
    let mut client = Client::connect(args.port)?;
    let (start, mut key) = (now_micros(), 0_u64);
    let mut next = start;
    while now_micros() < start + args.seconds * SECOND {
        let requests = (key..key + args.rate / 10).map(|key| {
            let ttl = (500 + key % 5_000).to_string();
            set(&[
                "SET",
                &format!("churn:{}", key % args.number),
                &"v".repeat(key as usize % 200),
                "PX",
                &ttl,
            ])
        });
        client.pipeline(requests)?;
        key += args.rate / 10;
        if key % (args.rate * 10) < args.rate / 10 {
            let seconds = (now_micros() - start) / SECOND;
            let size = String::from_utf8_lossy(client.run(&["DBSIZE"])?).into_owned();
            println!("{seconds} s: {:.1} MiB, {size} keys", megabytes(args.pid));
        }
        next += SECOND / 10;
        sleep_until(next);
    }
    Ok(())
}

pub(crate) fn idle(args: &Args) -> Result<()> {
    let mut clients = Vec::new();
    for _ in 0..args.number {
        let mut client = Client::connect(args.port)?;
        client.run(&["PING"])?;
        clients.push((client, now_micros()));
    }
    println!("{} connections: {:.1} MiB", args.number, megabytes(args.pid));
    let mut times = histogram();
    for (client, since) in &mut clients {
        let mut byte = [0];
        match client.reader.read(&mut byte) {
            Ok(0) => times.saturating_record(now_micros() - *since),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                times.saturating_record(now_micros() - *since)
            }
            other => panic!("not closed: {other:?}"),
        }
    }
    print("from the last request to the end", &times);
    Ok(())
}

pub(crate) fn stuck(args: &Args) -> Result<()> {
    prepare(args)?;
    let ends = || now_micros() + args.seconds * SECOND / 2;
    print("GETs alone", &gets(args, ends())?);
    let mut clients = Vec::new();
    for _ in 0..args.number.min(1_000) {
        let mut client = Client::connect(args.port)?;
        client.send(b"*3\r\n$3\r\nSET\r\n$7\r\nstalled\r\n$1000\r\nhalf")?;
        clients.push(client);
    }
    print("GETs beside stuck clients", &gets(args, ends())?);
    Ok(())
}
