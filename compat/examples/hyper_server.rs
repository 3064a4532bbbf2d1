//! An HTTP server whose clients have ten seconds for each header:
//! `cargo run -p shardwheel-compat --features hyper --example hyper_server`.
//!
//! It prints its address, and serves until it is killed.

use std::convert::Infallible;
use std::error::Error;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use shardwheel_compat::HyperTimer;
use tokio::net::TcpListener;

async fn answer(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("hello")))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::default()).header_read_timeout(Duration::from_secs(10));

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}/", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let connection = server.serve_connection(TokioIo::new(stream), service_fn(answer));
        // A connection that ends by its timeout is no failure of the server.
        tokio::spawn(async { drop(connection.await) });
    }
}
