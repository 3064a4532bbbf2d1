//! `/healthz` and `/metrics` of a worker.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use shardwheel_compat::HyperTimer;
use tokio::net::TcpListener;

use crate::serve::metrics::Metrics;

/// How long a client may take for a request's head.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait when the system has no more connections to give.
const NO_CONNECTION: Duration = Duration::from_millis(20);

/// Answers requests on an address, until the worker ends; returns the address.
pub(crate) async fn listen(at: SocketAddr, metrics: Arc<Metrics>) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(at).await?;
    let address = listener.local_addr()?;
    tokio::spawn(accept(listener, metrics));
    Ok(address)
}

async fn accept(listener: TcpListener, metrics: Arc<Metrics>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            shardwheel::sleep(NO_CONNECTION).await;
            continue;
        };
        let metrics = Arc::clone(&metrics);
        let service = service_fn(move |request| {
            let answer = answer(&request, &metrics);
            async move { Ok::<_, Infallible>(answer) }
        });
        let mut server = http1::Builder::new();
        server.timer(HyperTimer::default()).header_read_timeout(PATIENCE);
        // An error of a connection concerns only its client.
        tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
    }
}

fn answer(request: &Request<Incoming>, metrics: &Metrics) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => (StatusCode::OK, "ok\n".to_owned()),
        (&Method::GET, "/metrics") => (StatusCode::OK, metrics.text()),
        _ => (StatusCode::NOT_FOUND, "a worker has /healthz and /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
}
