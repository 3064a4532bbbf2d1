//! monoio: a timer on the thread's own loop.
//!
//! Without its feature `sync`, a waker of monoio's panics when another thread wakes it, or its own
//! thread while the runtime does not run. So the task that runs the timer is woken by monoio where
//! a future of the timer is polled, and by a byte through a socket from anywhere else.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, Write};
use std::os::unix::net::UnixStream as Socket;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use monoio::io::AsyncReadRent;
use monoio::net::UnixStream;
use monoio::time::{Instant, Sleep, sleep_until};
use monoio::utils::is_legacy;
use pin_project_lite::pin_project;
use shardwheel::{BuildError, Timer, TimerBuilder};

use crate::local::{LocalTimer, TICK, is_on_loop, on_loop};

/// Makes a [`LocalTimer`] on the monoio runtime of the calling thread, by io_uring or epoll.
///
/// It does not need monoio's feature `sync`, also if other threads schedule on its
/// [`timer`](LocalTimer::timer).
///
/// # Sleeps of an ordinary timer
///
/// The thread of a [`Timer`] wakes its sleeps, and monoio without `sync` cannot be woken by another
/// thread. In a task, the wake panics: the message is on stderr, and
/// [`on_panic`](TimerBuilder::on_panic) gets it; [`stats`](Timer::stats) counts it; the sleep never
/// ends. In the future of `block_on` itself, monoio ignores such a wake, and reports nothing. So use
/// a `LocalTimer`, or monoio with `sync`.
///
/// The same holds for the pending sleeps of a `LocalTimer` if it [ends](Timer::shutdown) on another
/// thread, or while the runtime does not run. Another thread may schedule a callback that shuts it
/// down: the callback runs on the loop.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use shardwheel_compat::monoio_timer;
///
/// # let builder = monoio::RuntimeBuilder::<monoio::IoUringDriver>::new();
/// # builder.enable_timer().build()?.block_on(async {
/// let timer = monoio_timer()?;
/// timer.sleep(Duration::from_millis(5)).await?;
/// let answer = timer.timeout(Duration::from_secs(1), async { 42 }).await?;
/// assert_eq!(answer, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// Outside of a runtime, in one without timers (`enable_timer`), and if the system gives no pair of
/// sockets.
///
/// # Performance
///
/// What is scheduled by [`LocalTimer::timer`], and is due before all else, wakes the loop by a byte
/// through a socket: a write and a read.
pub fn monoio_timer() -> Result<LocalTimer, BuildError> {
    monoio_timer_with(Timer::builder().tick(TICK))
}

/// Makes a [`LocalTimer`] as [`monoio_timer`] does, from settings of the caller's.
///
/// # Errors
///
/// As [`TimerBuilder::build_driven`].
///
/// # Panics
///
/// As [`monoio_timer`].
pub fn monoio_timer_with(builder: TimerBuilder) -> Result<LocalTimer, BuildError> {
    // Panics here, and not in the task, if the runtime has no timers.
    drop(sleep_until(Instant::now()));
    let (rings, hears) = pair().expect("the timer needs a pair of sockets");
    let task = Rc::new(RefCell::new(Waker::noop().clone()));
    let sleep = {
        let task = Rc::clone(&task);
        move |deadline: std::time::Instant| ByTask {
            sleep: sleep_until(deadline.into()),
            task: Rc::clone(&task),
        }
    };
    let (timer, run) = LocalTimer::new(builder, sleep)?;
    drop(monoio::spawn(hear(hears, Rc::clone(&task))));
    drop(monoio::spawn(run_by_bell(run, rings, task)));
    Ok(timer)
}

fn pair() -> io::Result<(Socket, UnixStream)> {
    let (rings, hears) = Socket::pair()?;
    rings.set_nonblocking(true)?;
    // io_uring would not wait for a byte, and epoll would block the thread.
    hears.set_nonblocking(is_legacy())?;
    Ok((rings, UnixStream::from_std(hears)?))
}

/// The waker of the task that runs the timer: monoio's own, which stays on the thread.
type Task = Rc<RefCell<Waker>>;

/// Wakes the task whenever bytes come. It ends with the last [`Bell`], which the driver has.
async fn hear(mut socket: UnixStream, task: Task) {
    let mut bytes = vec![0; 64];
    loop {
        let read;
        (read, bytes) = socket.read(bytes).await;
        match read {
            Ok(0) => return,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
            _ => task.borrow().wake_by_ref(),
        }
    }
}

/// Polls `run` with a waker that any thread may wake.
async fn run_by_bell(run: impl Future<Output = ()>, socket: Socket, task: Task) {
    let (mut run, socket, thread) = (pin!(run), Arc::new(socket), thread::current().id());
    let mut bell = None;
    poll_fn(|context| {
        if bell.is_none() || !task.borrow().will_wake(context.waker()) {
            task.replace(context.waker().clone());
            let (socket, task) = (Arc::clone(&socket), context.waker().clone());
            bell = Some(Waker::from(Arc::new(Bell { thread, task, socket })));
        }
        let bell = bell.as_ref().expect("it has just been set");
        on_loop(|| run.as_mut().poll(&mut Context::from_waker(bell)))
    })
    .await;
}

struct Bell {
    thread: ThreadId,
    task: Waker,
    socket: Arc<Socket>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if is_on_loop() && thread::current().id() == self.thread {
            self.task.wake_by_ref();
        } else {
            // An error is a socket that is full, so the task is woken anyway, or one that is not
            // read any more, since the task has ended.
            _ = (&*self.socket).write(&[0]);
        }
    }
}

pin_project! {
    /// A sleep of the runtime's, which wakes the task by monoio's own waker.
    struct ByTask {
        #[pin]
        sleep: Sleep,
        task: Task,
    }
}

impl Future for ByTask {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        this.sleep.poll(&mut Context::from_waker(&this.task.borrow()))
    }
}
