//! The protocol of clients and servers: lines of text.
//!
//! | line | from | meaning |
//! |---|---|---|
//! | `ping` | client | I am here |
//! | `remind <ms> <id>` | client | I am here; send me this id after this many milliseconds |
//! | `reminder <id>` | server | the time of this reminder has come |
//! | `idle <packets>` | server | you were silent for too long after this many packets; I close |

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

/// No valid line is longer than this, in bytes.
const MAX_LINE: usize = 64;
/// Bytes per read.
const CHUNK: usize = 1_024;

/// A packet from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Ping,
    Remind { after: Duration, id: u64 },
}

/// A line from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Reminder { id: u64 },
    Idle { packets: usize },
}

impl Request {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words = line.split(' ').collect::<Vec<_>>();
        match words[..] {
            ["ping"] => Some(Self::Ping),
            ["remind", millis, id] => {
                let after = Duration::from_millis(millis.parse::<u32>().ok()?.into());
                Some(Self::Remind { after, id: id.parse().ok()? })
            }
            _ => None,
        }
    }
}

impl Reply {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        match line.split_once(' ')? {
            ("reminder", id) => Some(Self::Reminder { id: id.parse().ok()? }),
            ("idle", packets) => Some(Self::Idle { packets: packets.parse().ok()? }),
            _ => None,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ping => f.write_str("ping"),
            Self::Remind { after, id } => write!(f, "remind {} {id}", after.as_millis()),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reminder { id } => write!(f, "reminder {id}"),
            Self::Idle { packets } => write!(f, "idle {packets}"),
        }
    }
}

/// The bytes read from a stream so far.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
}

impl Lines {
    /// Reads all available bytes, as an edge-triggered poller requires. Returns whether more may
    /// come.
    ///
    /// A stream has ended if it fails, or if a line is too long.
    pub(crate) fn fill(&mut self, stream: &mut impl Read) -> bool {
        let mut chunk = [0; CHUNK];
        loop {
            match stream.read(&mut chunk) {
                Ok(0) => return false,
                Ok(count) => self.bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            if self.is_babble() {
                return false;
            }
        }
    }

    /// The next complete line.
    pub(crate) fn next_line(&mut self) -> Option<String> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n')?;
        let line = self.bytes.drain(..=end).take(end).collect::<Vec<_>>();
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    fn is_babble(&self) -> bool {
        self.bytes.len() > MAX_LINE && !self.bytes.contains(&b'\n')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that returns one piece for each read, and then blocks.
    struct Pieces<'a>(Vec<&'a [u8]>);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let piece = self.0.pop().ok_or(io::ErrorKind::WouldBlock)?;
            into[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        for request in [Request::Ping, Request::Remind { after: Duration::from_millis(250), id: 7 }] {
            assert_eq!(Request::parse(&request.to_string()), Some(request));
        }
        for reply in [Reply::Reminder { id: 7 }, Reply::Idle { packets: 0 }] {
            assert_eq!(Reply::parse(&reply.to_string()), Some(reply));
        }
    }

    #[test]
    fn nonsense_is_not() {
        for wrong in ["", "pong", "ping ", "remind", "remind 5", "remind -5 1", "remind 5 1 1", "remind x 1"]
        {
            assert_eq!(Request::parse(wrong), None, "{wrong}");
        }
        for wrong in ["", "idle", "idle x", "reminder", "reminder 1 2"] {
            assert_eq!(Reply::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_may_come_in_pieces() {
        let mut lines = Lines::default();
        assert!(lines.fill(&mut Pieces(vec![b"ng\nremind", b"pi"])));
        assert_eq!((lines.next_line().as_deref(), lines.next_line()), (Some("ping"), None));
        assert!(lines.fill(&mut Pieces(vec![b" 5 1\n"])));
        assert_eq!(lines.next_line().as_deref(), Some("remind 5 1"));
    }

    #[test]
    fn a_stream_ends_by_itself_or_by_a_line_without_end() {
        let mut lines = Lines::default();
        assert!(!lines.fill(&mut Pieces(vec![b"", b"ping\n"])));
        assert_eq!(lines.next_line().as_deref(), Some("ping"));
        assert!(!lines.fill(&mut Pieces(vec![&[b'x'; MAX_LINE + 1]])));
    }
}
