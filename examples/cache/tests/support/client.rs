//! A client that sends any bytes, and reads replies of RESP2 and RESP3.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// No reply takes longer, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(30);

/// A reply. Kinds that differ on the wire differ here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim(Vec<u8>),
    NullBulk,
    NullArray,
    Null,
    Array(Vec<Value>),
    Set(Vec<Value>),
    Map(Vec<Value>),
    Push(Vec<Value>),
}

impl Value {
    pub(crate) fn bulk(text: &str) -> Self {
        Self::Bulk(text.as_bytes().to_vec())
    }

    pub(crate) fn elements(&self) -> &[Value] {
        match self {
            Self::Array(all) | Self::Set(all) | Self::Map(all) | Self::Push(all) => all,
            other => panic!("not a list: {other:?}"),
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Simple(text) | Self::Error(text) => text.clone(),
            Self::Bulk(bytes) | Self::Verbatim(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("not a text: {other:?}"),
        }
    }

    pub(crate) fn integer(&self) -> i64 {
        match self {
            Self::Integer(value) => *value,
            other => panic!("not an integer: {other:?}"),
        }
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    reader: BufReader<TcpStream>,
}

/// A request as an array of bulk strings.
pub(crate) fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A pipeline: each line is a command.
pub(crate) fn pipeline<L: AsRef<str>>(lines: &[L]) -> Vec<u8> {
    lines.iter().flat_map(|line| encode(&line.as_ref().split(' ').collect::<Vec<_>>())).collect()
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        let reader = BufReader::new(stream.try_clone().expect("a reader"));
        Self { stream, reader }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sent");
    }

    /// Runs the words of a line as a command.
    pub(crate) fn run(&mut self, line: &str) -> Value {
        self.run_args(&line.split(' ').collect::<Vec<_>>())
    }

    pub(crate) fn run_args<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Value {
        self.send(&encode(args));
        self.read()
    }

    /// The next reply.
    pub(crate) fn read(&mut self) -> Value {
        self.try_read().expect("a reply before the end")
    }

    /// The next reply; `None` at the end of the connection.
    pub(crate) fn try_read(&mut self) -> Option<Value> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("no reply: {error}"),
        }
        let line = line.strip_suffix(b"\r\n").unwrap_or_else(|| panic!("not a line: {line:?}"));
        let (kind, rest) = (line[0], line[1..].iter().map(|&byte| char::from(byte)).collect::<String>());
        let number = || rest.parse::<i64>().unwrap_or_else(|_| panic!("not a number: {rest}"));
        Some(match kind {
            b'+' => Value::Simple(rest),
            b'-' => Value::Error(rest),
            b':' => Value::Integer(number()),
            b'_' => Value::Null,
            b'$' if number() < 0 => Value::NullBulk,
            b'*' if number() < 0 => Value::NullArray,
            b'$' => Value::Bulk(self.read_bytes(number() as usize)),
            b'=' => Value::Verbatim(self.read_bytes(number() as usize)),
            b'*' => Value::Array(self.read_many(number())),
            b'~' => Value::Set(self.read_many(number())),
            b'>' => Value::Push(self.read_many(number())),
            b'%' => Value::Map(self.read_many(number() * 2)),
            other => panic!("no reply begins with {other}"),
        })
    }

    fn read_bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len + 2];
        self.reader.read_exact(&mut bytes).expect("the whole reply");
        assert!(bytes.ends_with(b"\r\n"));
        bytes.truncate(len);
        bytes
    }

    fn read_many(&mut self, len: i64) -> Vec<Value> {
        (0..len).map(|_| self.read()).collect()
    }

    /// All replies until the server closes the connection.
    pub(crate) fn read_to_end(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.try_read()).collect()
    }

    /// Whether something arrives within this time.
    pub(crate) fn hears_within(&mut self, time: Duration) -> bool {
        if !self.reader.buffer().is_empty() {
            return true;
        }
        self.stream.set_read_timeout(Some(time)).expect("a timeout");
        let heard = self.reader.fill_buf().is_ok();
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        heard
    }
}
