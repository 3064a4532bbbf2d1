//! How a timing wheel works: dials of a clock, and timers that go from one to the next.
//!
//! A clock has three dials: seconds, minutes and hours. Here each dial has eight buckets. A bucket
//! of the first dial is one tick, of the second eight, of the third sixty-four. A timer waits on
//! the finest dial on which its bucket lies within one turn. When its bucket's turn comes, the
//! timer *cascades*: it moves to the next finer dial. So before it fires it moves at most once for
//! each dial, however long it waits.
//!
//! `cargo run --example dials`

use std::error::Error;
use std::time::Duration;

use shardwheel::{Config, Tick, shard};

const BUCKETS: usize = 8;

/// Ticks in a bucket of a dial: 1, 8, 64, 512.
fn span(dial: u32) -> Tick {
    (BUCKETS as Tick).pow(dial)
}

/// The finest dial on which the bucket of `deadline` lies within one turn from `now`.
fn finest(deadline: Tick, now: Tick) -> u32 {
    let is_near = |dial: &u32| deadline / span(*dial) - now / span(*dial) < BUCKETS as Tick;
    (0..).find(is_near).expect("a dial with one bucket left has room for all ticks")
}

fn draw(now: Tick, deadline: Tick, dial: u32) {
    // The shard's own dials have room for two turns, so a timer may come a turn ahead.
    let place = (deadline / span(dial)) as usize % BUCKETS;
    let buckets = (0..BUCKETS).map(|bucket| if bucket == place { " *" } else { " ." });
    let buckets = buckets.collect::<String>();
    println!("  tick {now:>4}  dial {} ({:>3} ticks a bucket) [{buckets} ]", dial + 1, span(dial));
}

fn follow(deadline: Tick) -> Result<(), Box<dyn Error>> {
    let config = Config::builder().tick(Duration::from_secs(1)).wheel_size(BUCKETS).build()?;
    let (scheduler, mut advancer) = shard(&config);
    scheduler.schedule(deadline, "ding")?;
    println!("\na timer for tick {deadline}");

    let mut dial = finest(deadline, 0);
    draw(0, deadline, dial);
    for now in 1.. {
        let fired = advancer.advance(now).next();
        // The shard counts the moves from one dial to a finer one.
        let moves = u32::try_from(scheduler.stats().cascaded)?;
        let reached = finest(deadline, 0) - moves;
        if reached < dial {
            dial = reached;
            draw(now, deadline, dial);
        }
        if let Some(fired) = fired {
            assert_eq!(now, fired.deadline, "neither early nor late");
            println!("  tick {now:>4}  {}: fired after {moves} cascades", fired.payload);
            return Ok(());
        }
    }
    unreachable!("it fires")
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("dials of {BUCKETS} buckets; * is the bucket in which the timer waits");
    // Within one turn of the first, second and third dial; and further than three dials reach: then
    // the shard makes another, coarser one. So every deadline has a place.
    [6, 42, 350, 1_001].into_iter().try_for_each(follow)
}
