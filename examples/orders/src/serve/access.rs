//! Who may ask: the bearer of the token, or without one every program that reaches the address, but no page
//! that a browser has from elsewhere.

use std::net::IpAddr;

use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Request};

use super::http::Refusal;

/// With a token, every request must bear it. Without one, a browser's page of another server may not ask.
pub(super) fn authorise(token: Option<&str>, request: &Request<Incoming>) -> Result<(), Refusal> {
    let Some(token) = token else { return own_page(request.headers()) };
    let sent = request.headers().get(header::AUTHORIZATION).map_or(&b""[..], HeaderValue::as_bytes);
    let sent = bearer(sent).unwrap_or_default();
    // The time does not depend on where the first difference is.
    let differ = sent.iter().zip(token.as_bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    if differ == 0 && sent.len() == token.len() { Ok(()) } else { Err(Refusal::Token) }
}

/// A browser says which page a request comes from, if it may change something or is of another server's
/// page. A name that anyone may point at this address is no proof, so the server's own page has a number or
/// `localhost` for it.
fn own_page(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let from = origin.to_str().unwrap_or_default();
    let authority = from.split_once("://").map_or("", |(_, authority)| authority);
    let parsed = authority.parse::<Authority>().ok().map(|authority| authority.host().to_owned());
    let host = parsed.unwrap_or_default();
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
    let same = headers.get(header::HOST).is_some_and(|host| host.as_bytes() == authority.as_bytes());
    if same && (number || host == "localhost") {
        Ok(())
    } else {
        Err(Refusal::Origin(from.chars().take(100).collect()))
    }
}

/// What follows the name of the scheme, which may have letters of any case.
fn bearer(sent: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = sent.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii())
}
