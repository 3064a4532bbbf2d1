//! What parsing a request costs: this package's parser beside the crate `redis-protocol`.
//!
//! `cargo bench -p cache --bench parse`, on a machine that does nothing else. Each figure is the
//! median of eleven rounds, with the least and the greatest; the two take turns.

use std::hint::black_box;
use std::time::Instant;

use bytes::BytesMut;
use redis_protocol::resp2::decode::{decode, decode_bytes_mut, decode_range};

/// The server's parser; its library shows it to nobody.
#[allow(dead_code, unused_imports, clippy::unit_arg)]
#[path = "../src/protocol/mod.rs"]
mod protocol;

/// What the parser's requests name of the rest.
mod keyspace {
    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct Hash;
}

const ROUNDS: usize = 11;
/// Requests parsed in one round.
const REQUESTS: usize = 1_600_000;
/// Requests in a buffer: a pipeline.
const PIPELINE: usize = 16;

/// Parses a buffer of requests; returns the number of arguments.
type Parse = fn(&[u8]) -> usize;

fn own(mut buffer: &[u8]) -> usize {
    let (mut parser, mut arguments) = (protocol::parser::Parser::default(), 0);
    while let Ok(Some(len)) = parser.parse(buffer, true) {
        arguments += black_box(parser.request(buffer)).len();
        buffer = &buffer[len..];
    }
    arguments
}

/// Spans of the buffer.
fn ranges(mut buffer: &[u8]) -> usize {
    let mut arguments = 0;
    while let Ok(Some((frame, len))) = decode_range(buffer) {
        if let redis_protocol::resp2::types::RangeFrame::Array(all) = &frame {
            arguments += all.len();
        }
        black_box(frame);
        buffer = &buffer[len..];
    }
    arguments
}

/// Each argument in memory of its own.
fn owned(mut buffer: &[u8]) -> usize {
    let mut arguments = 0;
    while let Ok(Some((frame, len))) = decode(buffer) {
        if let redis_protocol::resp2::types::OwnedFrame::Array(all) = &frame {
            arguments += all.len();
        }
        black_box(frame);
        buffer = &buffer[len..];
    }
    arguments
}

/// Counted references to the buffer, which is copied once.
fn counted(buffer: &[u8]) -> usize {
    let (mut buffer, mut arguments) = (BytesMut::from(buffer), 0);
    while let Ok(Some((frame, ..))) = decode_bytes_mut(&mut buffer) {
        if let redis_protocol::resp2::types::BytesFrame::Array(all) = &frame {
            arguments += all.len();
        }
        black_box(frame);
    }
    arguments
}

fn main() {
    let kinds: [(&str, &[&str]); 2] =
        [("GET", &["GET", "key:000000012345"]), ("SET EX", &["SET", "key:000000012345", "xxx", "EX", "60"])];
    let parsers: [(&str, Parse); 4] = [
        ("this package", own),
        ("redis-protocol, ranges", ranges),
        ("redis-protocol, owned", owned),
        ("redis-protocol, bytes", counted),
    ];
    println!("ns a request, median [least, greatest] of {ROUNDS} rounds of {REQUESTS} requests");
    for (kind, args) in kinds {
        let request: String = args.iter().map(|arg| format!("${}\r\n{arg}\r\n", arg.len())).collect();
        let buffer = format!("*{}\r\n{request}", args.len()).repeat(PIPELINE).into_bytes();
        let mut figures = vec![Vec::new(); parsers.len()];
        for _ in 0..ROUNDS {
            for (figures, (_, parse)) in figures.iter_mut().zip(parsers) {
                let start = Instant::now();
                let arguments: usize = (0..REQUESTS / PIPELINE).map(|_| parse(black_box(&buffer))).sum();
                figures.push(start.elapsed().as_nanos() as f64 / REQUESTS as f64);
                assert_eq!(arguments, REQUESTS * args.len());
            }
        }
        for (figures, (name, _)) in figures.iter_mut().zip(parsers) {
            figures.sort_by(f64::total_cmp);
            println!(
                "{kind:7} {name:24} {:6.1} [{:.1}, {:.1}]",
                figures[ROUNDS / 2],
                figures[0],
                figures[ROUNDS - 1]
            );
        }
    }
}
