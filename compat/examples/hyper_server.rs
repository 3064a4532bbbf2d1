//! An HTTP server with a header timeout, on tokio's timer or on shardwheel's.
//!
//! `cargo run --release -p shardwheel-compat --features hyper --example hyper_server -- --timer shardwheel`
//!
//! It prints its address, and serves until it is killed or `--seconds` have passed. `benches/wrk.sh`
//! compares the two timers with it.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use shardwheel_compat::HyperTimer;
use tokio::net::{TcpListener, TcpStream};

#[derive(Parser)]
struct Arguments {
    /// Whose timers the server uses.
    #[arg(long, value_enum, default_value = "shardwheel")]
    timer: TimerOf,
    /// Where it listens; port 0 is any free port.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// How long a client may take for a header, and how long a connection may be idle.
    #[arg(long, default_value = "10")]
    header_seconds: u64,
    /// How long the server serves; for ever by default.
    #[arg(long)]
    seconds: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TimerOf {
    Tokio,
    Shardwheel,
}

async fn answer(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

async fn serve(listener: TcpListener, server: http1::Builder) -> ! {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => begin(stream, &server),
            Err(error) => eprintln!("no connection: {error}"),
        }
    }
}

/// Serves a connection in a task of its own. A connection that ends by its timeout is no failure of
/// the server.
fn begin(stream: TcpStream, server: &http1::Builder) {
    let connection = server.serve_connection(TokioIo::new(stream), service_fn(answer));
    tokio::spawn(async { drop(connection.await) });
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let mut server = http1::Builder::new();
    match arguments.timer {
        TimerOf::Tokio => server.timer(TokioTimer::new()),
        TimerOf::Shardwheel => server.timer(HyperTimer::default()),
    };
    server.header_read_timeout(Duration::from_secs(arguments.header_seconds));

    let listener = TcpListener::bind(arguments.listen).await?;
    println!("http://{}/", listener.local_addr()?);
    let limit = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    let _ = shardwheel::timeout(limit, serve(listener, server)).await;
    Ok(())
}
