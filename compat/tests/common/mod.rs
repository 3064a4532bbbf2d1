//! What the tests of several libraries use.

#![allow(dead_code, reason = "no test uses all of it")]

use std::future::Future;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// More than anything here takes, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs an async test on two threads.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(within(test))
}

/// Waits for a future that ends soon.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    timeout(PATIENCE, future).await.expect("it should have ended long ago")
}

/// Waits until the condition holds.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "not yet: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Gets `path` over a connection of its own, and returns the whole response.
pub(crate) async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    within(stream.read_to_string(&mut response)).await.unwrap();
    response
}
