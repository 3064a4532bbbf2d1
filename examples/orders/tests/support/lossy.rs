//! A proxy before a NATS server that loses messages which streams deliver, acknowledgements, and the answers
//! of leaders that were asked for a message.
//!
//! That is what happens when a connection breaks or a server dies: the broker has sent a message, and
//! assumes that it was delivered.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// What a stream says of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery<'a> {
    pub(crate) kind: Kind,
    /// The stream; in an answer, the subject of the message.
    pub(crate) stream: &'a str,
    pub(crate) sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// To a consumer.
    Delivered,
    /// The stream has taken it in.
    Ack,
    /// The leader was asked for it.
    Answer,
}

type Loses = Arc<dyn Fn(Delivery<'_>) -> bool + Send + Sync>;

/// Begins to listen; returns the address of the proxy, which lives as long as the test.
pub(crate) fn start(
    upstream: SocketAddr,
    loses: impl Fn(Delivery<'_>) -> bool + Send + Sync + 'static,
) -> String {
    Proxy::start(upstream, loses).url
}

/// A proxy that may also fall silent: it stops passing bytes on, and closes nothing. That is what a
/// client sees when a cable is pulled, or a firewall forgets a connection. Connections that are
/// made afterwards work.
pub(crate) struct Proxy {
    pub(crate) url: String,
    /// How often it has fallen silent. Orderings are all SeqCst: this is a test.
    cuts: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) fn start(
        upstream: SocketAddr,
        loses: impl Fn(Delivery<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("nats://{}", listener.local_addr().expect("an address"));
        let (loses, cuts): (Loses, _) = (Arc::new(loses), Arc::<AtomicU64>::default());
        let shared = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client whose connection breaks makes another one.
                let _ = connect(client, upstream, Arc::clone(&loses), &shared);
            }
        });
        Self { url, cuts }
    }

    /// All connections that there are fall silent.
    pub(crate) fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

fn connect(client: TcpStream, upstream: SocketAddr, loses: Loses, cuts: &Arc<AtomicU64>) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let (cuts, born) = (Arc::clone(cuts), cuts.load(Ordering::SeqCst));
    let lives = move || cuts.load(Ordering::SeqCst) == born;
    let goes_on = lives.clone();
    thread::spawn(move || {
        let mut bytes = [0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            if goes_on() && to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        // What was silent stays so for the other side.
        if goes_on() {
            let _ = to.shutdown(std::net::Shutdown::Both);
        }
    });
    thread::spawn(move || {
        let _ =
            pass(server, &client, |delivery| delivery.is_some_and(|delivery| loses(delivery)) || !lives());
        if lives() {
            let _ = client.shutdown(std::net::Shutdown::Both);
        } else {
            // Its client would see the end.
            std::mem::forget(client);
        }
    });
    Ok(())
}

/// Passes on what the server says, until the connection ends.
fn pass(
    server: TcpStream,
    mut client: &TcpStream,
    loses: impl Fn(Option<Delivery<'_>>) -> bool,
) -> io::Result<()> {
    let mut server = BufReader::new(server);
    let mut frame = Vec::new();
    loop {
        frame.clear();
        if server.read_until(b'\n', &mut frame)? == 0 {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&frame).into_owned();
        let words = line.split_whitespace().collect::<Vec<_>>();
        if let Some(size) = payload(&words) {
            let begin = frame.len();
            frame.resize(begin + size + "\r\n".len(), 0);
            server.read_exact(&mut frame[begin..])?;
        }
        let answer = || {
            let payload = std::str::from_utf8(&frame[line.len()..]).ok()?;
            ack(payload).or_else(|| found(payload))
        };
        let delivered = words.iter().find_map(|word| delivery(word)).or_else(answer);
        if !loses(delivered) {
            client.write_all(&frame)?;
        }
    }
}

/// The length of what follows a line.
fn payload(words: &[&str]) -> Option<usize> {
    let message = matches!(words.first(), Some(&"MSG" | &"HMSG"));
    words.last().filter(|_| message)?.parse().ok()
}

/// A delivery has a subject for its answer: `$JS.ACK.STREAM.CONSUMER.DELIVERED.SEQUENCE...`.
fn delivery(word: &str) -> Option<Delivery<'_>> {
    let mut tokens = word.strip_prefix("$JS.ACK.")?.split('.');
    Some(Delivery { kind: Kind::Delivered, stream: tokens.next()?, sequence: tokens.nth(2)?.parse().ok()? })
}

/// An acknowledgement is `{"stream":"STREAM", "seq":SEQUENCE...`.
fn ack(payload: &str) -> Option<Delivery<'_>> {
    let (stream, sequence) = named(payload.strip_prefix("{\"stream\":\"")?)?;
    Some(Delivery { kind: Kind::Ack, stream, sequence })
}

/// A leader's answer is `{"type":"...","message":{"subject":"SUBJECT","seq":SEQUENCE...`.
fn found(payload: &str) -> Option<Delivery<'_>> {
    let (_, message) = payload.split_once("\"message\":{\"subject\":\"")?;
    let (stream, sequence) = named(message)?;
    Some(Delivery { kind: Kind::Answer, stream, sequence })
}

/// The name before a quotation mark, and the number after it.
fn named(text: &str) -> Option<(&str, u64)> {
    let (name, rest) = text.split_once('"')?;
    let digits = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    Some((name, digits[..end].parse().ok()?))
}
