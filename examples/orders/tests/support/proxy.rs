//! A proxy before a NATS server that may fall silent: it stops passing bytes on, and closes
//! nothing. That is what a client sees when a cable is pulled, or a firewall forgets a connection.
//! Connections that are made afterwards work.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// It lives as long as the test.
pub(crate) struct Proxy {
    pub(crate) url: String,
    /// How often it has fallen silent. Orderings are all SeqCst: this is a test.
    cuts: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("nats://{}", listener.local_addr().expect("an address"));
        let cuts = Arc::<AtomicU64>::default();
        let shared = Arc::clone(&cuts);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client whose connection breaks makes another one.
                let _ = connect(client, upstream, &shared);
            }
        });
        Self { url, cuts }
    }

    /// All connections that there are fall silent.
    pub(crate) fn cut(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }
}

fn connect(client: TcpStream, upstream: SocketAddr, cuts: &Arc<AtomicU64>) -> io::Result<()> {
    let server = TcpStream::connect(upstream)?;
    for (from, to) in [(client.try_clone()?, server.try_clone()?), (server, client)] {
        let (cuts, born) = (Arc::clone(cuts), cuts.load(Ordering::SeqCst));
        thread::spawn(move || pass(from, to, || cuts.load(Ordering::SeqCst) == born));
    }
    Ok(())
}

/// Passes bytes on until the connection ends, or for ever none.
fn pass(mut from: TcpStream, mut to: TcpStream, lives: impl Fn() -> bool) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if lives() && to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    if lives() {
        let _ = to.shutdown(Shutdown::Both);
    } else {
        // What was silent stays so: the other side would see the end.
        std::mem::forget(to);
    }
}
