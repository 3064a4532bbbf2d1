//! A request has 100 ms. The handler asks two services, whose own time limits are far longer: both
//! inherit what is left of the request's time, and the second is told so by a header.
//!
//! `cargo run --example deadline`

use std::error::Error;
use std::time::Duration;

use shardwheel::{Deadline, DeadlineError, Elapsed, sleep, timeout};

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A client with a time limit of its own. It knows nothing of requests or budgets.
async fn look_up_user(takes: Duration) -> Result<&'static str, Elapsed> {
    let answer = async {
        sleep(takes).await;
        "Ada"
    };
    timeout(Duration::from_secs(30), answer).await
}

/// A client of another process: it sends the time that is left, as gRPC does.
async fn recommend(user: &str, takes: Duration) -> Result<String, Box<dyn Error>> {
    let header = Deadline::current().map(Deadline::header);
    let answer = timeout(Duration::from_secs(30), serve(user, header.as_deref(), takes));
    answer.await?.map_err(Into::into)
}

/// That process. It takes the deadline from the header.
async fn serve(user: &str, header: Option<&str>, takes: Duration) -> Result<String, DeadlineError> {
    let deadline = Deadline::parse(header.unwrap_or("10S"))?;
    println!("    the service has at most 100 ms: {}", deadline.remaining() <= ms(100));
    let work = async {
        sleep(takes).await;
        format!("books for {user}")
    };
    let done = deadline.scope(async { timeout(Duration::from_secs(60), work).await }).await;
    Ok(done.unwrap_or_else(|Elapsed { .. }| "nothing in time".to_owned()))
}

/// The handler of a request.
async fn handle(user_takes: Duration, recommend_takes: Duration) -> Result<String, Box<dyn Error>> {
    let user = look_up_user(user_takes).await?;
    recommend(user, recommend_takes).await
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for (name, user, books) in
        [("fast", ms(5), ms(5)), ("slow", ms(5), ms(60_000)), ("stuck", ms(60_000), ms(5))]
    {
        println!("{name}:");
        let answer = Deadline::after(ms(100)).scope(handle(user, books)).await;
        match answer {
            Ok(books) => println!("    {name}: {books}"),
            Err(error) => println!("    {name}: {error}"),
        }
    }
    println!("outside: {:?}", Deadline::current());
    println!("{}", Deadline::parse("100 ms").unwrap_err());
}
