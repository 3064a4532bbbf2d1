//! An event loop: one thread, one poller (mio), one shard. The shard's next expiration is the
//! timeout of the poll. The server answers a packet such as "150 tea" with "tea", 150 ms later.
//!
//! `cargo run -p event-loop`

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use shardwheel::{Advancer, Config, Scheduler, Tick, shard};

enum Due {
    Answer(String, SocketAddr),
    End,
}

/// Ends the poll: the poller's waker as a standard one, which the shard calls.
struct Alarm(mio::Waker);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.wake().expect("the poller is there");
    }
}

/// The first tick that is `millis` from now: deadlines round up, so no timer is early.
fn after(millis: u64, start: Instant) -> Tick {
    Config::default().ticks_ceil(start.elapsed() + Duration::from_millis(millis))
}

/// Polls until a socket is ready, a timer may be due, or another thread has scheduled an earlier one.
fn sleep(poll: &mut Poll, advancer: &mut Advancer<Due>, waker: &Waker, start: Instant) -> io::Result<()> {
    // Register first, then ask: a timer that another thread adds after the answer ends the poll.
    advancer.register_waker(waker);
    let at = advancer.next_expiration().map(|tick| Config::default().duration_of(tick));
    // One millisecond more, because pollers count in whole milliseconds.
    let left = at.map(|at| at.saturating_sub(start.elapsed()) + Duration::from_millis(1));
    poll.poll(&mut Events::with_capacity(64), left)
}

fn serve(socket: &UdpSocket, scheduler: &Scheduler<Due>, start: Instant) -> Result<(), Box<dyn Error>> {
    let mut packet = [0; 64];
    while let Ok((length, from)) = socket.recv_from(&mut packet) {
        let (delay, text) = std::str::from_utf8(&packet[..length])?.split_once(' ').ok_or("no delay")?;
        scheduler.schedule(after(delay.parse()?, start), Due::Answer(text.to_owned(), from))?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let (start, (scheduler, mut advancer)) = (Instant::now(), shard(&Config::default()));
    let (mut poll, mut socket) = (Poll::new()?, UdpSocket::bind("127.0.0.1:0".parse()?)?);
    let waker = Waker::from(Arc::new(Alarm(mio::Waker::new(poll.registry(), Token(1))?)));
    poll.registry().register(&mut socket, Token(0), Interest::READABLE)?;
    let (address, handle) = (socket.local_addr()?, scheduler.clone());
    let client = thread::spawn(move || ask(address, &handle, start));
    let mut running = true;
    while running {
        sleep(&mut poll, &mut advancer, &waker, start)?;
        // First the timers, then the sockets: until it advances, the shard takes this thread to be asleep.
        for fired in advancer.advance(Config::default().ticks_floor(start.elapsed())) {
            match fired.payload {
                Due::Answer(text, to) => drop(socket.send_to(text.as_bytes(), to)?),
                Due::End => running = false,
            }
        }
        serve(&socket, &scheduler, start)?;
    }
    println!("the loop ended after {} ms", start.elapsed().as_millis());
    client.join().map_err(|_| "the client panicked".into())
}

/// Another thread: three packets and their answers, and then a timer of its own on the loop's shard.
fn ask(server: SocketAddr, scheduler: &Scheduler<Due>, start: Instant) {
    let (socket, mut answer) = (std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port"), [0; 64]);
    for packet in ["150 tea", "50 water", "100 coffee"] {
        socket.send_to(packet.as_bytes(), server).expect("the server listens");
    }
    for _ in 0..3 {
        let length = socket.recv(&mut answer).expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..length]);
        println!("{answer} came after {} ms", start.elapsed().as_millis());
    }
    scheduler.schedule(after(100, start), Due::End).map_err(drop).expect("the loop has not ended");
}
