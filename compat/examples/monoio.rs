//! A client on monoio that limits the time of its requests, and a report every 100 ms, by a timer on
//! the thread's own loop, without monoio's feature `sync`:
//! `cargo run -p shardwheel-compat --features monoio --example monoio`.

use std::cell::Cell;
use std::error::Error;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use shardwheel_compat::{LocalTimer, monoio_timer};

const LIMIT: Duration = Duration::from_millis(200);

/// Answers each request after as many hundredths of a second as its byte says.
async fn serve(timer: LocalTimer, listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let timer = timer.clone();
        drop(monoio::spawn(async move {
            let (_read, byte) = stream.read(vec![0; 1]).await;
            timer.sleep(Duration::from_millis(10) * u32::from(byte[0])).await.unwrap();
            _ = stream.write_all(byte).await;
        }));
    }
}

async fn request(server: SocketAddr, hundredths: u8) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(vec![hundredths]).await.0?;
    stream.read(vec![0; 1]).await.0.map(|_| ())
}

#[monoio::main(enable_timer = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    let timer = monoio_timer()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    drop(monoio::spawn(serve(timer.clone(), listener)));

    let (answers, late) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for number in 0..40 {
        let (timer, answers, late) = (timer.clone(), Rc::clone(&answers), Rc::clone(&late));
        drop(monoio::spawn(async move {
            match timer.timeout(LIMIT, request(address, number)).await {
                Ok(answer) => answer.map(|()| answers.set(answers.get() + 1)).unwrap(),
                Err(elapsed) => late.set(late.get() + usize::from(elapsed.is_elapsed())),
            }
        }));
    }

    let mut report = timer.interval(Duration::from_millis(100));
    while answers.get() + late.get() < 40 {
        report.tick().await?;
        let pending = timer.timer().stats().pending;
        println!("{} answers, {} took more than {LIMIT:?}; {pending} timers", answers.get(), late.get());
    }
    Ok(())
}
