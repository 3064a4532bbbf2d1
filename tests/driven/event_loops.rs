//! Driven timers in event loops that exist: mio's, and a runtime of tokio's with one thread.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll as Poller, Token};
use shardwheel::{DelayQueue, Timer};

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);
/// Far longer than the test takes.
const LIMIT: Duration = Duration::from_secs(60);

struct WakesPoller(mio::Waker);

impl Wake for WakesPoller {
    fn wake(self: Arc<Self>) {
        self.0.wake().unwrap();
    }
}

/// A server of one thread: it answers a client, closes it when its time is up, and is woken by
/// another thread's timer.
#[test]
fn mio_in_real_time() {
    let (timer, mut driver) = Timer::builder().build_driven().unwrap();
    let mut poller = Poller::new().unwrap();
    let waker = mio::Waker::new(poller.registry(), WAKER).unwrap();
    driver.register_waker(&Waker::from(Arc::new(WakesPoller(waker))));
    let mut listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    poller.registry().register(&mut listener, SOCKET, Interest::READABLE).unwrap();
    let address = listener.local_addr().unwrap();

    let client = thread::spawn(move || {
        let begin = Instant::now();
        let mut stream = TcpStream::connect(address).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        (answer, begin.elapsed())
    });
    let (sender, receiver) = std::sync::mpsc::channel();
    let (mut events, mut fired, begin) = (Events::with_capacity(8), 0, Instant::now());
    let mut other = None;
    while fired < 2 {
        let wait = driver.next_deadline().map(|next| next.saturating_duration_since(Instant::now()));
        poller.poll(&mut events, Some(wait.unwrap_or(LIMIT))).unwrap();
        if events.iter().any(|event| event.token() == SOCKET) {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"served").unwrap();
            let (sender, from_outside) = (sender.clone(), timer.clone());
            // The connection is closed by its timer.
            timer
                .schedule_after(Duration::from_millis(30), move || {
                    drop(stream);
                    sender.send(()).unwrap();
                })
                .unwrap();
            other = Some(thread::spawn(move || from_outside.schedule_after(Duration::from_millis(5), || ())));
        }
        fired += driver.turn();
        assert!(begin.elapsed() < LIMIT);
    }
    other.unwrap().join().unwrap().unwrap();
    receiver.try_recv().unwrap();
    let (answer, took) = client.join().unwrap();
    assert_eq!(answer, "served");
    assert!(took >= Duration::from_millis(30), "{took:?}");
}

/// Turns a driver within a runtime: the runtime's own timer waits for the next deadline.
async fn drive(mut driver: shardwheel::Driver) {
    let mut rest = pin!(tokio::time::sleep(Duration::ZERO));
    poll_fn(move |context| {
        driver.register_waker(context.waker());
        loop {
            driver.turn();
            let Some(next) = driver.next_deadline() else { return Poll::<()>::Pending };
            rest.as_mut().reset(next.into());
            if rest.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

#[test]
fn tokio_with_one_thread_in_real_time() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let (timer, driver) = Timer::builder().build_driven().unwrap();
    local.block_on(&runtime, async move {
        let driver = tokio::task::spawn_local(drive(driver));
        let begin = Instant::now();
        timer.sleep(Duration::from_millis(20)).await.unwrap();
        assert!(begin.elapsed() >= Duration::from_millis(20));
        let late = timer.timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
        assert!(late.is_err());

        let queue = DelayQueue::new(&timer);
        let from_outside = thread::spawn({
            let timer = timer.clone();
            move || timer.schedule_after(Duration::from_millis(1), || ()).unwrap()
        });
        queue.insert("second", Duration::from_millis(20)).unwrap();
        queue.insert("first", Duration::from_millis(10)).unwrap();
        let mut stream = &queue;
        for expected in ["first", "second"] {
            let next = futures::StreamExt::next(&mut stream).await.unwrap();
            assert_eq!(next.value, expected);
        }
        from_outside.join().unwrap();
        let begin = Instant::now();
        while timer.stats().pending > 0 {
            timer.sleep(Duration::from_millis(1)).await.unwrap();
            assert!(begin.elapsed() < LIMIT);
        }
        driver.abort();
        assert!(driver.await.unwrap_err().is_cancelled());
        // Its driver is gone, and the timer with it.
        assert!(timer.sleep(LIMIT).await.is_err());
    });
}
