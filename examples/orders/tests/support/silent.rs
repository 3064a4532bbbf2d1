//! A proxy before a NATS server that falls silent: it stops passing bytes on, and closes nothing.
//!
//! That is what a client sees when a cable is pulled, or a firewall forgets a connection. The connections
//! that the client makes afterwards work.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub(crate) struct Silent {
    address: SocketAddr,
    /// How often it has fallen silent. Orderings are all SeqCst: this is a test.
    cuts: Arc<AtomicU64>,
}

impl Silent {
    /// Begins to listen; it lives as long as the test.
    pub(crate) fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let (address, cuts) = (listener.local_addr().expect("an address"), Arc::<AtomicU64>::default());
        let shared = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A server that is away closes the connection.
                let Ok(server) = TcpStream::connect(upstream) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone(), to.try_clone());
                    let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                    let (cuts, born) = (Arc::clone(&shared), shared.load(Ordering::SeqCst));
                    thread::spawn(move || pass(from, to, || cuts.load(Ordering::SeqCst) == born));
                }
            }
        });
        Self { address, cuts }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// All connections that there are fall silent.
    pub(crate) fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

/// Passes bytes on while the connection lives; then reads them and drops them until its end.
fn pass(mut from: TcpStream, mut to: TcpStream, lives: impl Fn() -> bool) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes) {
        if count == 0 || lives() && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    // What was silent stays so for the other side.
    if lives() {
        let _ = to.shutdown(std::net::Shutdown::Both);
    }
}
