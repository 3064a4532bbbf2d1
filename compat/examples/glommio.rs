//! Sessions that expire on glommio's own loop, and another thread that adds to them:
//! `cargo run -p shardwheel-compat --features glommio --example glommio`.
//!
//! glommio needs 512 KiB of locked memory: `ulimit -l`.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use glommio::{LocalExecutorBuilder, Placement};
use shardwheel::DelayQueue;
use shardwheel_compat::glommio_timer;

const LIVE: Duration = Duration::from_millis(300);

async fn sessions() -> Result<(), Box<dyn Error>> {
    let timer = glommio_timer()?;
    let sessions = Arc::new(DelayQueue::new(timer.timer()));
    for user in ["Ada", "Brendan", "Cleo"] {
        sessions.insert(user, LIVE)?;
        timer.sleep(Duration::from_millis(20)).await?;
    }

    // Only this thread's loop fires them. A thread that inserts an earlier one wakes it.
    let logins = Arc::clone(&sessions);
    let login = thread::spawn(move || logins.insert("Donald", LIVE / 6).map(|_key| ()));

    let begin = Instant::now();
    while !sessions.is_empty() {
        let expired = timer.timeout(Duration::from_secs(30), sessions.next()).await?;
        let session = expired.expect("the timer goes on");
        println!("{:?}: the session of {} has expired", begin.elapsed(), session.value);
    }
    login.join().expect("it ended well")?;
    assert_eq!(timer.timer().stats().pending, 0);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let executor = LocalExecutorBuilder::new(Placement::Unbound).name("sessions").make()?;
    executor.run(sessions())
}
