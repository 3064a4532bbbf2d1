//! A pinned server: one thread a core, each with an event loop of its own (compio) and, on that loop,
//! a timer of its own. Nothing is shared, and no thread wakes another.
//!
//! A client's line such as "150 tea" is answered with "tea", 150 ms later. A connection that is
//! silent for 300 ms is closed.
//!
//! `cargo run -p event-loop --bin pinned`

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use compio::runtime::Runtime;
use shardwheel_compat::{LocalTimer, compio_timer};

const IDLE: Duration = Duration::from_millis(300);
const CLIENTS: usize = 3;

/// The end of a thread, or of a connection.
type End = Result<(), Box<dyn Error>>;

/// Answers the lines of one connection until it is silent for too long.
async fn serve(timer: LocalTimer, mut stream: TcpStream) -> End {
    let mut lines = String::new();
    loop {
        let read = timer.timeout(IDLE, stream.read(Vec::with_capacity(64)));
        let Ok(read) = read.await else { return Ok(()) };
        if read.0? == 0 {
            return Ok(());
        }
        lines.push_str(std::str::from_utf8(&read.1)?);
        while let Some((line, rest)) = lines.split_once('\n') {
            let (delay, text) = line.split_once(' ').ok_or("no delay")?;
            let (delay, answer) = (Duration::from_millis(delay.parse()?), format!("{text}\n"));
            lines = rest.to_owned();
            // One timer a connection and one an answer: all on this thread's shard.
            timer.sleep(delay).await?;
            stream.write_all(answer).await.0?;
        }
    }
}

/// One core's loop: it says where it listens, serves some clients, and ends.
async fn listen(addresses: Sender<SocketAddr>) -> End {
    let (timer, listener) = (compio_timer()?, TcpListener::bind("127.0.0.1:0").await?);
    addresses.send(listener.local_addr()?)?;
    let mut connections = Vec::new();
    for _client in 0..CLIENTS {
        let (stream, _peer) = listener.accept().await?;
        let timer = timer.clone();
        connections.push(compio::runtime::spawn(async move { serve(timer, stream).await.unwrap() }));
    }
    for connection in connections {
        connection.await.map_err(|_| "a connection panicked")?;
    }
    Ok(())
}

fn main() -> End {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let cores: Vec<_> = if cores.is_empty() { vec![None] } else { cores.into_iter().map(Some).collect() };
    let (sender, addresses) = channel();
    let servers = cores.into_iter().map(|core| {
        let sender = sender.clone();
        thread::spawn(move || {
            core.map(core_affinity::set_for_current);
            Runtime::new().unwrap().block_on(listen(sender)).unwrap();
        })
    });
    let servers: Vec<_> = servers.collect();
    drop(sender);
    let clients = addresses
        .iter()
        .flat_map(|address| [address; CLIENTS])
        .map(|address| thread::spawn(move || ask(address).expect("the server answers")));
    for thread in servers.into_iter().chain(clients.collect::<Vec<_>>()) {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(())
}

/// A client: two lines, their answers, and silence until the server closes.
fn ask(server: SocketAddr) -> std::io::Result<()> {
    let (begin, mut client) = (Instant::now(), BufReader::new(Client::connect(server)?));
    client.get_mut().write_all(b"100 coffee\n50 tea\n")?;
    for _answer in 0..2 {
        let mut answer = String::new();
        client.read_line(&mut answer)?;
        println!("{} came after {} ms", answer.trim_end(), begin.elapsed().as_millis());
    }
    let left = client.read(&mut [0; 8])?;
    println!("{} after {} ms", if left == 0 { "closed" } else { "more came" }, begin.elapsed().as_millis());
    Ok(())
}
