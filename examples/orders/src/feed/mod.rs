//! `feed`: sends orders and payments from CSV files to a server.
//!
//! # Times
//!
//! A server dates an order or a payment when it comes in; the dates in the files are not sent. So by
//! default the dates decide two things only:
//!
//! - *The order of sending.* The orders of an item go by date, over one connection. A payment follows
//!   its order's answer, and earlier payments for the same order.
//! - *What is late.* A payment that is dated after its order's check (`--check-after` after the order)
//!   is sent after the server's check, so it comes late there too. All of these are sent at the end,
//!   once every check is past. With a check after 30 minutes the feed ends after some 30 minutes;
//!   `--skip-late` leaves them out, which changes no outcome.
//!
//! Everything else is sent as fast as the server takes it. Each outcome is that of a replay if
//! (1) in the replay no order gets stock that a check takes back: the last order is placed before the
//! first check, or there is enough stock; and (2) the server gets each payment before it checks the
//! order: its `--check-after` must be longer than the time for which it is away.
//!
//! With `--speed` every line is sent at its date, that many times faster. If the server's
//! `--check-after` is as many times shorter than that of the files, an hour there is an hour here, and
//! (1) is not needed.
//!
//! # A cut
//!
//! A request without an answer is sent again, and so is one that the server refuses for now. The
//! waits grow up to two seconds, or are what the server asks for, until `--give-up-after`. The server
//! knows what it has: the answer is `duplicate` then.
//!
//! How far each connection has come is in a file (`cursor.rs`). A feed that is killed goes on from
//! there, and sends again what was answered in the fifth of a second before.
//!
//! | file | what |
//! |---|---|
//! | `plan.rs` | what is sent over which connection, and in which order |
//! | `lane.rs` | one connection |
//! | `target.rs` | the kinds of servers |
//! | `cursor.rs` | how far the feed has come |

mod args;
mod cursor;
mod lane;
mod plan;
mod target;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use order_reconciliation::files::Files;
use order_reconciliation::progress::Progress as Bar;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::exchange::Failure;
use crate::{EXIT_BROKEN, EXIT_OK, Streams, client};

use cursor::{Cursor, Job, Progress};
use lane::{Done, Pace, Sender, Shared};
use plan::Lane;
use target::Target;

pub(crate) use args::Args;

/// The time between two replacements of the progress file.
const SAVE_EVERY: Duration = Duration::from_millis(200);

/// Sends the files; returns the exit code.
pub(crate) fn run(args: &Args, streams: &mut Streams<'_>) -> u8 {
    match feed(args, streams) {
        Ok(done) => {
            if let Some(reason) = &done.invalid {
                let _ = writeln!(streams.err, "error: the server finds a line invalid: {reason}");
            }
            if done.invalid.is_some() { EXIT_BROKEN } else { EXIT_OK }
        }
        Err(failure) => {
            let code = failure.report(streams);
            if matches!(failure, Failure::Server(_)) {
                let _ = writeln!(streams.err, "the same command goes on from here");
            }
            code
        }
    }
}

fn feed(args: &Args, streams: &mut Streams<'_>) -> Result<Done, Failure> {
    let target = Target::new(&args.to, args.exchange.token()?.as_deref(), args.exchange.give_up_after)?;
    let files = args.exchange.files(streams)?;
    let check_after = args.check_after.as_millis() as u64;
    let mut lanes = plan::lanes(&files, args.connections, check_after, args.speed.is_some());
    if args.skip_late {
        lanes.iter_mut().for_each(|lane| lane.late.clear());
    }
    let progress = resume(args, job(args, &files))?;
    let feed = Feed::new(args, files, progress, &lanes);
    feed.announce(streams);
    let begin = Instant::now();
    feed.send(&target, lanes, streams)?;
    feed.shared.progress.clone().finish();
    let done = feed.shared.with_done(|done| done.clone());
    summary(streams.out, &done, feed.before, begin.elapsed()).map_err(Failure::Output)?;
    Ok(done)
}

/// What has to be the same when the feed is resumed.
fn job(args: &Args, files: &Files) -> Job {
    let mut hasher = DefaultHasher::new();
    for order in &files.orders {
        (order.order_id, &order.item, order.quantity, order.amount, order.placed_at).hash(&mut hasher);
    }
    for payment in &files.payments {
        (payment.order_id, payment.amount, payment.paid_at).hash(&mut hasher);
    }
    Job {
        to: args.to.clone(),
        orders: files.orders.len(),
        payments: files.payments.len(),
        checksum: hasher.finish(),
        connections: args.connections,
        check_after_ms: args.check_after.as_millis() as u64,
        speed: args.speed,
    }
}

/// How far an earlier feed of the same job has come.
fn resume(args: &Args, job: Job) -> Result<Progress, Failure> {
    let path = args.progress_file();
    match Progress::read(&path) {
        Ok(None) => Ok(Progress { lanes: vec![Cursor::default(); job.connections], job }),
        Ok(Some(progress)) if progress.job == job && progress.lanes.len() == job.connections => Ok(progress),
        Ok(Some(_)) => {
            let path = path.display();
            Err(Failure::Progress(format!(
                "{path} is the progress of a feed with other files or options; remove it to begin anew"
            )))
        }
        Err(error) => Err(Failure::Progress(format!("{}: {error}", path.display()))),
    }
}

struct Feed {
    shared: Arc<Shared>,
    job: Job,
    progress_file: PathBuf,
    /// Lines that were sent before.
    before: usize,
}

impl Feed {
    fn new(args: &Args, files: Files, progress: Progress, lanes: &[Lane]) -> Self {
        let Progress { job, lanes: cursors } = progress;
        let before = cursors.iter().map(Cursor::lines).sum();
        let lines = lanes.iter().map(|lane| lane.orders.len() + lane.in_time.len() + lane.late.len());
        let pace = Pace { start: Instant::now(), first: first(&files, lanes, &cursors), speed: args.speed };
        let shared = Shared {
            progress: Bar::resumed("feeding", lines.sum::<usize>() as u64, before as u64),
            files,
            batch: args.batch,
            pace,
            done: Mutex::new(Done { cursors, ..Done::default() }),
        };
        Self { shared: Arc::new(shared), job, progress_file: args.progress_file(), before }
    }

    fn announce(&self, streams: &mut Streams<'_>) {
        if self.before > 0 {
            let (lines, file) = (self.before, self.progress_file.display());
            let _ = writeln!(streams.err, "{lines} lines were sent before, by {file}");
        }
    }

    fn send(&self, target: &Target, lanes: Vec<Lane>, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(Failure::Output)?;
        let senders = self.senders(target, lanes);
        let senders = self.all(&runtime, senders.into_iter().map(Sender::run))?;
        let late = senders.iter().map(|sender| sender.lane.late.len() - sender.cursor.late).sum::<usize>();
        if late > 0 {
            let last = senders.iter().map(|sender| sender.cursor.last_check_at).max().unwrap_or(0);
            let wait = lane::until_checked(last).as_secs();
            let say = || {
                let _ =
                    writeln!(streams.err, "{late} late payments follow after the last check, in {wait} s");
            };
            self.shared.progress.suspend(say);
        }
        self.all(&runtime, senders.into_iter().map(Sender::run_late))?;
        // It is not there if nothing was sent.
        let _ = std::fs::remove_file(&self.progress_file);
        Ok(())
    }

    fn senders(&self, target: &Target, lanes: Vec<Lane>) -> Vec<Sender> {
        let cursors = self.shared.with_done(|done| done.cursors.clone());
        let sender = |(number, (lane, cursor))| {
            let shared = Arc::clone(&self.shared);
            Sender { shared, lane, number, link: target.link(), cursor }
        };
        lanes.into_iter().zip(cursors).enumerate().map(sender).collect()
    }

    /// Runs all lanes until they end or one fails, and keeps how far they have come.
    fn all(
        &self,
        runtime: &Runtime,
        lanes: impl Iterator<Item = impl Future<Output = Result<Sender, client::Failure>> + Send + 'static>,
    ) -> Result<Vec<Sender>, Failure> {
        let ended = runtime.block_on(async {
            let (mut running, mut ended) = (lanes.collect::<JoinSet<_>>(), Vec::new());
            loop {
                match shardwheel::timeout(SAVE_EVERY, running.join_next()).await {
                    Ok(None) => return Ok(ended),
                    Ok(Some(lane)) => ended.push(lane.expect("a lane does not panic")?),
                    Err(_) => self.save()?,
                }
            }
        });
        self.save()?;
        ended
    }

    fn save(&self) -> Result<(), Failure> {
        let lanes = self.shared.with_done(|done| done.cursors.clone());
        let progress = Progress { job: self.job.clone(), lanes };
        let path = &self.progress_file;
        progress.write(path).map_err(|error| Failure::Progress(format!("{}: {error}", path.display())))
    }
}

/// The earliest date of what is not sent. The clock of a resumed feed begins there.
fn first(files: &Files, lanes: &[Lane], cursors: &[Cursor]) -> u64 {
    let next = lanes.iter().zip(cursors).flat_map(|(lane, cursor)| {
        let order = lane.orders.get(cursor.orders).map(|&slot| files.orders[slot as usize].placed_at);
        let paid = lane.in_time.get(cursor.in_time);
        order.into_iter().chain(paid.map(|paid| files.payments[paid.payment as usize].paid_at))
    });
    next.min().unwrap_or(0)
}

fn summary(out: &mut dyn Write, done: &Done, before: usize, took: Duration) -> io::Result<()> {
    writeln!(out, "| lines | answer | number |\n|---|---|---|")?;
    for ((kind, answer), number) in &done.answers {
        writeln!(out, "| {kind} | {answer} | {number} |")?;
    }
    let (lines, seconds) = (done.answers.values().sum::<u64>(), took.as_secs_f64());
    let per_second = lines as f64 / seconds;
    writeln!(out, "{lines} lines in {seconds:.1} s, {per_second:.0} a second; {before} were sent before")?;
    writeln!(out, "{} requests were sent more than once", done.repeated)
}
