//! What a call meets that another does between two of its steps. Stalls are code that runs in the
//! timer's clock (a call reads the time before it looks) and in a key's `Hash` (a call and an alarm
//! hash the key after they know the time, and before they look). The pairs of calls, and where each
//! is held:
//!
//! | is stalled | meanwhile | then |
//! |---|---|---|
//! | any call, before it looks | another finds the entry expired | it sees nothing; `drain` takes it out |
//! | | the alarm reports it; it is removed; drained; cleared | it sees nothing |
//! | | it is replaced | it sees the new one |
//! | | it is extended | it sees it |
//! | an alarm that is due, before its look | drain, clear, insert | takes the entry out, nothing is reported |
//! | | remove, retain, get, extend | finds it expired, it is reported |
//! | | a call that had read the time before extends it | it is reported at its new end |
//! | | the last handle is dropped | it is reported, the others are dropped |
//! | `insert`, before it places the entry | the alarm looks | `calls.rs` |
//! | `iter`, `retain`, `drain`, between two entries | any call | `all.rs` |

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, Driver, Timer};
use shardwheel_compat::{ExpiringMap, Expiry};

use super::{HOUR, SECOND};

/// Code that runs once, if it is armed.
#[derive(Clone, Default)]
struct Stall(Arc<Mutex<Option<Act>>>);

type Act = Box<dyn FnOnce() + Send>;

impl Stall {
    fn arm(&self, code: impl FnOnce() + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::new(code));
    }

    fn run(&self) {
        let code = self.0.lock().unwrap().take();
        code.into_iter().for_each(|code| code());
    }
}

/// Shows the time that it has read before its stall.
#[derive(Clone)]
struct Time(Arc<Mutex<Instant>>, Stall);

impl Clock for Time {
    fn now(&self) -> Instant {
        let read = *self.0.lock().unwrap();
        self.1.run();
        read
    }
}

#[derive(Clone)]
struct Key(Stall);

impl PartialEq for Key {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, _state: &mut H) {
        self.0.run();
    }
}

type Map = ExpiringMap<Key, u32>;

/// A map with one entry, whose value is 10 and which expires after a second; on a timer that runs when
/// it is turned.
type Interlude = fn(&Stage);

struct Stage {
    time: Time,
    timer: Timer,
    driver: Arc<Mutex<Driver>>,
    map: Map,
    key: Key,
    reports: Arc<Mutex<Vec<u32>>>,
}

impl Stage {
    fn new(expiry: impl Into<Expiry>) -> Self {
        let time = Time(Arc::new(Mutex::new(Instant::now())), Stall::default());
        let (timer, driver) = Timer::builder().shards(1).clock(time.clone()).build_driven().unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&reports);
        let map = Map::new(&timer, 10, move |_, _, value| log.lock().unwrap().push(*value));
        let (driver, key) = (Arc::new(Mutex::new(driver)), Key(Stall::default()));
        map.insert(key.clone(), 10, expiry).unwrap();
        Self { time, timer, driver, map, key, reports }
    }

    fn pass(&self, time: Duration) {
        *self.time.0.lock().unwrap() += time;
    }

    fn turn(&self) {
        self.driver.lock().unwrap().turn();
    }
}

/// Returns the values that it sees.
type Call = fn(&Map, &Key) -> Vec<u32>;

fn values(value: Option<Arc<u32>>) -> Vec<u32> {
    value.iter().map(|value| **value).collect()
}

/// All that see an entry only while it is alive.
const CALLS: [Call; 8] = [
    |map, key| values(map.get(key)),
    |map, key| values(map.get_and_extend(key, 2 * HOUR)),
    |map, key| values(map.peek(key)),
    |map, key| values(map.deadline(key).and_then(|_| map.peek(key))),
    |map, key| if map.extend(key, 2 * HOUR) { values(map.peek(key)) } else { Vec::new() },
    |map, key| values(map.remove(key)),
    |map, _| map.iter().map(|(_, value)| *value).collect(),
    |map, _| {
        let mut shown = Vec::new();
        map.retain(|_, value| {
            shown.push(*value);
            true
        });
        shown
    },
];

const DRAIN: Call = |map, _| map.drain().map(|(_, value, _)| *value).collect();

/// Where a call is stalled: while it reads the time, or when it knows it.
const STALLS: [fn(&Stage) -> &Stall; 2] = [|stage| &stage.time.1, |stage| &stage.key.0];

/// A call is stalled before it looks, while `meanwhile` runs.
fn late_look(call: Call, stall: fn(&Stage) -> &Stall, meanwhile: fn(&Stage)) -> (Vec<u32>, Stage) {
    let stage = Stage::new(Expiry::time_to_idle(SECOND));
    let (map, key) = (stage.map.clone(), stage.key.clone());
    let stage = Arc::new(stage);
    let inner = Arc::clone(&stage);
    stall(&stage).arm(move || meanwhile(&inner));
    let seen = call(&map, &key);
    drop((map, key));
    (seen, Arc::into_inner(stage).expect("the stall has run"))
}

#[test]
fn no_call_revives_what_another_has_found_expired() {
    let found: fn(&Stage) = |stage| {
        stage.pass(HOUR);
        assert!(stage.map.peek(&stage.key).is_none());
    };
    for stall in STALLS {
        for call in CALLS {
            let (seen, stage) = late_look(call, stall, found);
            assert_eq!(seen, []);
            assert!(CALLS.iter().all(|later| later(&stage.map, &stage.key).is_empty()), "it lives again");
            stage.turn();
            assert_eq!((&*stage.reports.lock().unwrap(), stage.map.len()), (&vec![10], 0));
        }
        let (seen, stage) = late_look(DRAIN, stall, found);
        stage.turn();
        assert_eq!((seen, stage.timer.stats().pending), (vec![10], 0));
        assert_eq!(*stage.reports.lock().unwrap(), []);
    }
}

#[test]
fn a_call_sees_what_is_there_when_it_looks() {
    let meanwhile: [(Interlude, &[u32]); 6] = [
        (
            |stage| {
                stage.pass(HOUR);
                stage.turn();
                assert_eq!(*stage.reports.lock().unwrap(), [10]);
            },
            &[],
        ),
        (|stage| assert!(stage.map.remove(&stage.key).is_some()), &[]),
        (|stage| assert_eq!(stage.map.drain().count(), 1), &[]),
        (|stage| stage.map.clear(), &[]),
        (|stage| assert!(stage.map.insert(stage.key.clone(), 11, HOUR).unwrap().is_some()), &[11]),
        (|stage| assert!(stage.map.extend(&stage.key, HOUR)), &[10]),
    ];
    for call in CALLS.into_iter().chain([DRAIN]) {
        for (stall, (meanwhile, expected)) in STALLS.into_iter().flat_map(|s| meanwhile.map(|m| (s, m))) {
            let (seen, stage) = late_look(call, stall, meanwhile);
            assert_eq!(seen, expected);
            assert_eq!(stage.map.len(), stage.timer.stats().pending, "an alarm for each entry");
        }
    }
}

/// An alarm that is due is stalled before its look, while `meanwhile` runs.
fn late_alarm(meanwhile: fn(&Stage)) -> Stage {
    let stage = Arc::new(Stage::new(SECOND));
    stage.pass(2 * SECOND);
    let inner = Arc::clone(&stage);
    stage.key.0.arm(move || meanwhile(&inner));
    stage.turn();
    Arc::into_inner(stage).expect("the stall has run")
}

#[test]
fn what_is_taken_out_before_the_alarm_looks_is_not_reported() {
    let takes: [(Interlude, usize); 3] = [
        (|stage| assert_eq!(DRAIN(&stage.map, &stage.key), [10]), 0),
        (|stage| stage.map.clear(), 0),
        (|stage| assert_eq!(values(stage.map.insert(stage.key.clone(), 11, HOUR).unwrap()), [10]), 1),
    ];
    for (take, left) in takes {
        let stage = late_alarm(take);
        // The pause of an alarm that has found no entry was its last.
        stage.pass(SECOND);
        stage.turn();
        assert_eq!((stage.map.len(), stage.timer.stats().pending), (left, left));
        assert_eq!(*stage.reports.lock().unwrap(), []);
        stage.pass(2 * HOUR);
        stage.turn();
        assert_eq!(*stage.reports.lock().unwrap(), vec![11; left]);
    }
}

#[test]
fn what_is_found_expired_before_the_alarm_looks_is_reported_once() {
    for call in CALLS {
        let stage = Arc::new(Stage::new(SECOND));
        stage.pass(2 * SECOND);
        let inner = Arc::clone(&stage);
        stage.key.0.arm(move || assert_eq!(call(&inner.map, &inner.key), []));
        stage.turn();
        assert_eq!((&*stage.reports.lock().unwrap(), stage.map.len()), (&vec![10], 0));
        assert_eq!(stage.timer.stats().pending, 0);
    }
}

#[test]
fn an_extension_before_the_look_of_a_due_alarm_counts() {
    let stage = Stage::new(SECOND);
    let (read, has_read) = mpsc::channel();
    let (go, goes) = mpsc::channel();
    let (map, key) = (stage.map.clone(), Key(Stall::default()));
    key.0.arm(move || {
        read.send(()).unwrap();
        goes.recv().unwrap();
    });
    let extends = thread::spawn(move || values(map.get_and_extend(&key, 10 * SECOND)));
    has_read.recv().unwrap();
    stage.pass(2 * SECOND);
    stage.key.0.arm(move || {
        go.send(()).unwrap();
        assert_eq!(extends.join().unwrap(), [10]);
    });
    stage.turn();
    assert_eq!((&*stage.reports.lock().unwrap(), stage.timer.stats().panics), (&vec![], 0));
    stage.pass(8 * SECOND - Duration::from_millis(1));
    stage.turn();
    assert_eq!((&*stage.reports.lock().unwrap(), stage.map.len()), (&vec![], 1));
    stage.pass(Duration::from_millis(2));
    stage.turn();
    assert_eq!((&*stage.reports.lock().unwrap(), stage.map.len()), (&vec![10], 0));
}

/// The alarm has the map for the time of its look and of its report.
#[test]
fn a_last_handle_that_is_dropped_before_the_look_of_a_due_alarm() {
    let Stage { time, timer, driver, map, key, reports } = Stage::new(SECOND);
    *time.0.lock().unwrap() += 2 * SECOND;
    key.0.arm(move || drop(map));
    driver.lock().unwrap().turn();
    assert_eq!((&*reports.lock().unwrap(), timer.stats().pending), (&vec![10], 0));
}
