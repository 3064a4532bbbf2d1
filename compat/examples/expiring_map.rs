//! Sessions that end when their users are idle, and a report of each: `cargo run -p shardwheel-compat
//! --features expiring-map --example expiring_map`.

use std::error::Error;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::Timer;
use shardwheel_compat::ExpiringMap;

/// How long a session lasts without a request.
const IDLE: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    let begin = Instant::now();
    let sessions = ExpiringMap::new(Timer::global(), 100_000, move |sessions, id: u32, user| {
        println!("{:?}: session {id} of {user} has ended; {} are left", begin.elapsed(), sessions.len());
    });
    for (id, user) in [(1, "Ada"), (2, "Brendan"), (3, "Cleo")] {
        sessions.insert(id, user, IDLE)?;
    }

    // A request of Ada's every 50 ms. Each extension is a store, and no timer operation.
    for _request in 0..6 {
        thread::sleep(Duration::from_millis(50));
        assert!(sessions.extend(&1, IDLE), "a request in time");
    }
    assert_eq!(sessions.remove(&1).as_deref(), Some(&"Ada")); // she has logged out
    assert!(sessions.get(&2).is_none() && sessions.is_empty());
    Ok(())
}
