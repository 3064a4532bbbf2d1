//! The programs of the guide's page `testing`: the scope of a manual clock within simulators, which have a time of their
//! own.

use std::future::pending;
use std::time::Duration;

use shardwheel::{ManualClock, sleep, timeout};

#[test]
fn turmoil_steps_and_the_clock_follows() {
    use tokio::io::AsyncReadExt;

    const TICK: Duration = Duration::from_millis(10);
    let clock = ManualClock::new();
    let mut sim = turmoil::Builder::new().tick_duration(TICK).build();
    sim.host("server", || async {
        let listener = turmoil::net::TcpListener::bind("0.0.0.0:80").await?;
        loop {
            let (stream, _) = listener.accept().await?;
            sleep(Duration::from_secs(20)).await; // is slow
            drop(stream);
        }
    });
    sim.client("client", async {
        let mut stream = turmoil::net::TcpStream::connect("server:80").await?;
        assert!(timeout(Duration::from_secs(5), stream.read_u8()).await.is_err());
        Ok(())
    });
    let (result, waiting) = clock.scope(|| {
        while !sim.step()? {
            clock.advance(TICK);
        }
        turmoil::Result::Ok(())
    });
    result.unwrap();
    assert!(clock.elapsed() >= Duration::from_secs(5) && clock.elapsed() < Duration::from_secs(6));
    // The server's.
    assert!(waiting.to_string().starts_with("1 sleep is pending, the first at 20."), "{waiting}");
}

#[test]
fn shuttle_moves_the_clock_by_a_thread() {
    let program = || {
        let clock = ManualClock::new();
        let (sender, slept) = std::sync::mpsc::channel();
        let task = clock.scope_future(async move {
            sleep(Duration::from_secs(3600)).await;
            assert!(timeout(Duration::from_secs(60), pending::<()>()).await.is_err());
            sender.send(()).unwrap();
        });
        let task = shuttle::thread::spawn(move || shuttle::future::block_on(task));
        while slept.try_recv().is_err() {
            clock.advance(Duration::from_secs(60));
            shuttle::thread::yield_now();
        }
        task.join().unwrap();
        assert!(clock.elapsed() >= Duration::from_secs(3660));
    };
    shuttle::check_random(program, 100);
}
