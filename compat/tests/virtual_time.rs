//! Programs under virtual time on tokio's runtime.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use shardwheel::{Clock, Deadline, Timer, interval_at, now, sleep, timeout};
use shardwheel_compat::{real_work, virtual_time};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, oneshot};
use tokio::task::spawn_blocking;

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fails if the test hangs.
fn ends<R: Send + 'static>(test: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, ended) = mpsc::channel();
    let thread = thread::spawn(move || {
        let output = test();
        let _ = sender.send(());
        output
    });
    match ended.recv_timeout(PATIENCE) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the program hangs"),
        _ => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
    }
}

/// The message of a panic.
fn panic_of(test: impl FnOnce() + Send + 'static) -> String {
    let test = || catch_unwind(AssertUnwindSafe(test)).expect_err("it panics");
    let text = |panic: Box<dyn std::any::Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(other) => (*other.downcast::<&str>().expect("a text")).to_owned(),
    };
    ends(move || text(test()))
}

#[test]
fn hours_take_no_time_and_come_to_the_nanosecond() {
    ends(|| {
        virtual_time(|clock| async move {
            let task = tokio::spawn(async {
                sleep(HOUR).await;
                now()
            });
            let begin = now();
            sleep(2 * HOUR).await;
            assert_eq!((now() - begin, task.await.unwrap() - begin), (2 * HOUR, HOUR));
            assert!(timeout(HOUR, pending::<()>()).await.is_err());
            let mut ticks = interval_at(now() + HOUR, HOUR);
            for _ in 0..500 {
                ticks.tick().await;
            }
            sleep(100_000 * HOUR).await;
            assert_eq!((clock.elapsed(), now()), (100_503 * HOUR, clock.now()));
        });
    });
}

/// A program that moves the clock until a timer fires, when the runtime parks, hangs here: the
/// callback wakes no task, so the runtime parks for good.
#[test]
fn a_callback_that_is_due_before_the_sleep_runs_and_the_time_goes_on() {
    ends(|| {
        virtual_time(|clock| async move {
            let (sender, called) = mpsc::channel();
            let at = clock.clone();
            Timer::global().schedule_every(HOUR, move || sender.send(at.elapsed()).unwrap()).unwrap();
            sleep(3 * HOUR + MS).await;
            assert_eq!(called.try_iter().collect::<Vec<_>>(), [HOUR, 2 * HOUR, 3 * HOUR]);
            assert_eq!(clock.elapsed(), 3 * HOUR + MS);
        });
    });
}

#[test]
fn a_callback_wakes_and_spawns_tasks() {
    ends(|| {
        virtual_time(|clock| async move {
            let (sender, task) = oneshot::channel();
            let callback = move || {
                let slept = tokio::spawn(async {
                    sleep(HOUR).await;
                    now()
                });
                sender.send(slept).unwrap();
            };
            Timer::global().schedule_after(HOUR, callback).unwrap();
            assert_eq!(task.await.unwrap().await.unwrap(), clock.now());
            assert_eq!(clock.elapsed(), 2 * HOUR);
        });
    });
}

/// By the clock of a real run, each of these limits has passed before the work is done.
#[test]
fn no_limit_passes_while_blocking_work_is_under_way() {
    ends(|| {
        virtual_time(|clock| async move {
            for round in 1..=3 {
                let work = spawn_blocking(move || {
                    thread::sleep(30 * MS);
                    round
                });
                // Another task moves the time when it may.
                let beside = tokio::spawn(sleep(2 * MS));
                assert_eq!(timeout(MS, work).await.unwrap().unwrap(), round);
                assert_eq!(clock.elapsed(), (round - 1) * 2 * MS);
                beside.await.unwrap();
            }
        });
    });
}

async fn loopback() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (client, server) = tokio::join!(TcpStream::connect(address), listener.accept());
    (client.unwrap(), server.unwrap().0)
}

#[test]
fn no_limit_passes_while_data_is_on_its_way_between_sockets_of_the_program() {
    ends(|| {
        virtual_time(|clock| async move {
            let (mut client, mut server) = timeout(MS, loopback()).await.unwrap();
            let echo = tokio::spawn(async move {
                while let Ok(byte) = server.read_u8().await {
                    server.write_u8(byte).await.unwrap();
                }
            });
            let rounds = async {
                for round in 0..=255 {
                    client.write_u8(round).await.unwrap();
                    assert_eq!(client.read_u8().await.unwrap(), round);
                }
            };
            timeout(MS, rounds).await.unwrap();
            assert_eq!(clock.elapsed(), Duration::ZERO);
            // A server that is slow by the virtual time is too late.
            let slow = async {
                sleep(2 * MS).await;
                client.write_u8(7).await
            };
            assert!(timeout(MS, slow).await.is_err());
            drop(client);
            echo.await.unwrap();
        });
    });
}

#[test]
fn no_limit_passes_while_real_work_is_under_way() {
    ends(|| {
        virtual_time(|clock| async move {
            let answer = || {
                let (sender, answer) = oneshot::channel();
                thread::spawn(move || {
                    thread::sleep(30 * MS);
                    sender.send(7)
                });
                answer
            };
            let beside = tokio::spawn(sleep(2 * MS));
            assert_eq!(timeout(MS, real_work(answer())).await, Ok(Ok(7)));
            assert_eq!(clock.elapsed(), Duration::ZERO);
            // Real work that is given up holds nothing up any more.
            tokio::select! {
                _ = real_work(pending::<()>()) => {}
                _ = answer() => {}
            }
            beside.await.unwrap();
            sleep(HOUR).await;
        });
    });
}

#[test]
fn the_time_of_tokio_goes_along() {
    ends(|| {
        virtual_time(|clock| async move {
            let begin = tokio::time::Instant::now();
            for round in 1..=100 {
                tokio::time::sleep(HOUR).await;
                assert_eq!(clock.elapsed(), (2 * round - 1) * HOUR);
                sleep(HOUR).await;
                assert_eq!((begin.elapsed(), clock.elapsed()), (2 * round * HOUR, 2 * round * HOUR));
            }
            // Of two limits, one by each, the earlier ends the work.
            let inner = tokio::time::timeout(HOUR, timeout(HOUR + MS, pending::<()>()));
            assert!(inner.await.is_err());
            let inner = timeout(HOUR, tokio::time::timeout(HOUR + MS, pending::<()>()));
            assert!(inner.await.is_err());
        });
    });
}

#[test]
fn the_clock_is_moved_by_hand() {
    ends(|| {
        virtual_time(|clock| async move {
            let (begin, mut hour) = (tokio::time::Instant::now(), sleep(HOUR));
            clock.advance(HOUR - MS);
            assert!(timeout(Duration::ZERO, &mut hour).await.is_err());
            clock.advance(MS);
            hour.await;
            sleep(MS).await;
            assert_eq!((clock.elapsed(), begin.elapsed()), (HOUR + MS, HOUR + MS));
            tokio::time::advance(HOUR).await;
            tokio::time::sleep(MS).await;
            assert_eq!(clock.elapsed(), 2 * HOUR + 2 * MS);
        });
    });
}

#[test]
fn tasks_are_within_the_scope_and_other_threads_are_not() {
    ends(|| {
        virtual_time(|clock| async move {
            sleep(HOUR).await;
            let limit = Deadline::after(HOUR);
            let task = tokio::spawn(async move {
                let made = Timer::global().now();
                (limit.scope(async { timeout(2 * HOUR, pending::<()>()).await.is_err() }).await, made)
            });
            assert_eq!(task.await.unwrap(), (true, clock.now() - HOUR));
            let real = spawn_blocking(|| (now(), Instant::now())).await.unwrap();
            assert!(real.1 - real.0 < HOUR / 60, "a thread goes by the system's time");
            let timer = Timer::builder().clock(clock.clone()).tick(MS / 10).build().unwrap();
            timer.sleep(MS / 10).await.unwrap();
        });
    });
}

#[test]
fn the_output_and_a_panic_go_through() {
    let text = ends(|| virtual_time(|_| async { Rc::new("text") }).len());
    assert_eq!(text, 4);
    let failed: Result<(), _> = virtual_time(|_| async { "7h".parse::<u32>().map(drop) });
    assert!(failed.is_err());
    let panic = panic_of(|| virtual_time(|_| async { panic!("on purpose") }));
    assert_eq!(panic, "on purpose");
}

#[test]
fn a_stall_says_when_and_what_is_pending() {
    let panic = panic_of(|| {
        virtual_time(|_| async {
            sleep(HOUR).await;
            tokio::spawn(sleep(Duration::MAX));
            pending::<()>().await;
        });
    });
    let says = "the program has stalled after 3600s of virtual time: it waits";
    assert!(panic.starts_with(says), "{panic}");
    assert!(panic.contains("never due: 1; spawned tasks: 1)"), "{panic}");
    assert_eq!(panic.contains(file!()), cfg!(feature = "introspect"), "{panic}");
}

/// Nothing is pending, and the program is no stall: work that the runtime knows of may take longer
/// than another thread is waited for.
#[test]
fn a_program_that_waits_for_real_work_alone_does_not_stall() {
    ends(|| {
        virtual_time(|clock| async move {
            let (notify, woken) = (std::sync::Arc::new(Notify::new()), Instant::now());
            let waker = std::sync::Arc::clone(&notify);
            thread::spawn(move || {
                thread::sleep(100 * MS);
                waker.notify_one();
            });
            notify.notified().await;
            assert!(woken.elapsed() >= 100 * MS);
            spawn_blocking(|| thread::sleep(Duration::from_secs(7))).await.unwrap();
            assert!(clock.elapsed() <= 10 * MS, "a probe may have moved it: {:?}", clock.elapsed());
            sleep(HOUR).await;
        });
    });
}
