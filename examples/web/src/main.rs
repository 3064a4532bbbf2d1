//! Builds the page and serves it on this machine: `cargo run`, in this folder.

#[cfg(not(target_family = "wasm"))]
mod host;

#[cfg(target_family = "wasm")]
fn main() {}

#[cfg(not(target_family = "wasm"))]
fn main() -> host::Result<()> {
    let port = std::env::args().nth(1).unwrap_or_else(|| "8044".into());
    let folder = host::build(&["--lib", "--release"], "release", "wheels_alive", &["index.html", "draw.js"])?;
    let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}"))?;
    println!("http://{}/ shows the wheels. Ctrl-C ends this.", listener.local_addr()?);
    loop {
        host::serve(&listener, &folder)?;
    }
}
