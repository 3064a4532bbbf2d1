//! Sessions that end when their users are idle, a report of each, and a restart that loses none:
//! `cargo run -p shardwheel-compat --features expiring-map --example expiring_map`.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::Timer;
use shardwheel_compat::{ExpiringMap, Expiry};

/// A session ends when it is idle for so long, and after its time to live at the latest.
const IDLE: Duration = Duration::from_millis(200);
const LIVE: Duration = Duration::from_secs(8 * 3_600);

type Sessions = ExpiringMap<u32, String>;

fn sessions(timer: &Timer) -> Sessions {
    let begin = Instant::now();
    Sessions::new(timer, 100_000, move |sessions, id, user| {
        println!("{:?}: session {id} of {user} has ended; {} are left", begin.elapsed(), sessions.len());
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let timer = Timer::new()?;
    let open = sessions(&timer);
    for (id, user) in [(1, "Ada"), (2, "Brendan"), (3, "Cleo")] {
        open.insert(id, user.to_owned(), Expiry::time_to_idle(IDLE).within(LIVE))?;
    }

    // A request of Ada's every 50 ms. Each use is a compare-and-swap, and no timer operation.
    for _request in 0..6 {
        thread::sleep(Duration::from_millis(50));
        assert!(open.get(&1).is_some(), "a request in time");
    }
    assert!(open.peek(&2).is_none());
    open.insert(4, "Donald".to_owned(), LIVE)?;
    assert_eq!(open.remove(&4).as_deref().map(String::as_str), Some("Donald")); // he has logged out

    // The end of the program: nothing expires any more, and what is left is saved, here as text.
    drop(timer.shutdown());
    let saved: String =
        open.drain().map(|(id, user, left)| format!("{id} {} {user}\n", left.as_millis())).collect();
    print!("saved:\n{saved}");

    // The next start. A session goes on with the time that it had left.
    let restored = sessions(Timer::global());
    for line in saved.lines() {
        let mut fields = line.splitn(3, ' ');
        let (id, left) = (fields.next().unwrap_or("").parse()?, fields.next().unwrap_or("").parse()?);
        restored.insert(id, fields.next().unwrap_or("").to_owned(), Duration::from_millis(left))?;
    }
    while !restored.is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
