//! A server on compio that closes idle connections, by a timer on the thread's own loop:
//! `cargo run -p shardwheel-compat --features compio --example compio`.

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use compio::BufResult;
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use shardwheel_compat::{LocalTimer, compio_timer};

const IDLE: Duration = Duration::from_millis(300);

/// Sends what comes back, until nothing comes for so long.
async fn serve(timer: LocalTimer, mut stream: TcpStream, peer: SocketAddr) -> Result<(), Box<dyn Error>> {
    let mut bytes = Vec::with_capacity(64);
    loop {
        bytes.clear();
        let Ok(BufResult(read, line)) = timer.timeout(IDLE, stream.read(bytes)).await else {
            println!("{peer} was idle for {IDLE:?}");
            return Ok(());
        };
        if read? == 0 {
            println!("{peer} has closed");
            return Ok(());
        }
        bytes = stream.write_all(line).await.1;
    }
}

/// Says something every 20 ms, and then nothing; or closes.
async fn client(timer: LocalTimer, server: SocketAddr, lines: usize, closes: bool) {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let mut talk = timer.interval(Duration::from_millis(20));
    for _line in 0..lines {
        talk.tick().await.unwrap();
        stream.write_all("hello\n").await.0.unwrap();
        assert_eq!(stream.read(Vec::with_capacity(64)).await.1, b"hello\n");
    }
    if !closes {
        assert_eq!(stream.read(Vec::with_capacity(64)).await.0.unwrap(), 0);
    }
}

#[compio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let timer = compio_timer()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut served = Vec::new();
    for (lines, closes) in [(6, false), (0, false), (2, true)] {
        compio::runtime::spawn(client(timer.clone(), address, lines, closes)).detach();
        let (stream, peer) = listener.accept().await?;
        let timer = timer.clone();
        served.push(compio::runtime::spawn(async move { serve(timer, stream, peer).await.unwrap() }));
    }
    for connection in served {
        connection.await.map_err(|_| "a connection panicked")?;
    }
    assert_eq!(timer.timer().stats().pending, 0);
    Ok(())
}
