//! Builds a module for the browser, with the JavaScript around it, and serves it on this machine.

use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The folder of this package.
pub const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// Builds what `cargo build` makes of the arguments, and returns the folder in which the module and
/// `files` lie: `MODULE.js` is imported.
pub fn build(arguments: &[&str], profile: &str, module: &str, files: &[&str]) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (target, out) = ("wasm32-unknown-unknown", Path::new(PACKAGE).join("target/site").join(module));
    let built = Command::new(cargo)
        .current_dir(PACKAGE)
        .args(["build", "--target", target, "--target-dir", "target"])
        .args(arguments)
        .status()?;
    if !built.success() {
        return Err(format!("the module does not build; `rustup target add {target}` may be missing").into());
    }
    let folder = Path::new(PACKAGE).join("target").join(target).join(profile);
    wasm_bindgen_cli_support::Bindgen::new()
        .input_path(folder.join(module).with_extension("wasm"))
        .web(true)?
        .typescript(false)
        .generate(&out)?;
    for file in files {
        let name = Path::new(file).file_name().ok_or("a file has a name")?;
        fs::copy(Path::new(PACKAGE).join(file), out.join(name))?;
    }
    Ok(out)
}

/// Serves the files of a folder until something is posted, and returns that.
pub fn serve(listener: &TcpListener, folder: &Path) -> Result<String> {
    loop {
        // A browser opens connections that it does not use, or ends.
        if let Ok(Some(posted)) =
            listener.accept().map_err(Into::into).and_then(|(stream, _)| answer(stream, folder))
        {
            return Ok(posted);
        }
    }
}

/// Answers one request. Returns the text that it posts.
fn answer(stream: TcpStream, folder: &Path) -> Result<Option<String>> {
    stream.set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line)?;
    let request = line.clone();
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line)?;
        if let Some((name, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().map_err(|error| format!("{name}: {error}"))?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = request.split(' ').nth(1).unwrap_or("/").split('?').next().unwrap_or("/");
    let name = if path == "/" { "index.html" } else { path.trim_start_matches('/') };
    // No name of a folder: nothing else of this machine is served.
    let found = if name.contains('/') { None } else { fs::read(folder.join(name)).ok() };
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("wasm") => "application/wasm",
        _ => "text/plain",
    };
    let status = if found.is_some() || length > 0 { "200 OK" } else { "404 Not Found" };
    let content = found.unwrap_or_default();
    let mut stream = reader.into_inner();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        content.len()
    )?;
    stream.write_all(&content)?;
    Ok((length > 0).then(|| String::from_utf8_lossy(&body).into_owned()))
}
