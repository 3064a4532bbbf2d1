//! The token of a server: from an option, a file or the environment.

use std::env;
use std::fs;
use std::path::PathBuf;

/// The environment's name for the token.
const VARIABLE: &str = "ORDERS_TOKEN";

/// Where the token comes from.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The server's token: every request must have the header `Authorization: Bearer TOKEN`. Others on
    /// this machine can see it here; `--token-file` and the variable `ORDERS_TOKEN` hide it
    #[arg(long, value_name = "TOKEN", value_parser = token)]
    token: Option<String>,

    /// A file that holds the token
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    token_file: Option<PathBuf>,
}

impl Args {
    /// The token, if there is one.
    pub(crate) fn read(&self) -> Result<Option<String>, String> {
        if let Some(given) = &self.token {
            return Ok(Some(given.clone()));
        }
        if let Some(file) = &self.token_file {
            let name = file.display();
            let text = fs::read_to_string(file).map_err(|error| format!("--token-file {name}: {error}"))?;
            return token(text.trim_end()).map(Some).map_err(|wrong| format!("--token-file {name}: {wrong}"));
        }
        let Some(text) = env::var_os(VARIABLE) else { return Ok(None) };
        token(&text.to_string_lossy()).map(Some).map_err(|wrong| format!("{VARIABLE}: {wrong}"))
    }
}

fn token(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    Err("a token has one or more visible ASCII characters, and no spaces".to_owned())
}
