//! The errors of the tool itself. A mutant that is not caught is no error of the tool.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The reason why the tool cannot continue.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be used.
    File {
        /// Its path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The tool does not understand something in a file.
    Unclear {
        /// Its path.
        file: PathBuf,
        /// What it is, and where.
        what: String,
    },
    /// The unchanged sources do not build.
    Build {
        /// The suite.
        suite: &'static str,
        /// Cargo's output.
        said: String,
    },
    /// A test fails on the unchanged sources.
    Red {
        /// Its name.
        test: String,
        /// Its message.
        said: String,
    },
    /// A file of results comes from other sources.
    OtherSources(PathBuf),
}

impl Error {
    /// Makes a closure for `map_err`.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        |source| Self::File { path, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Unclear { file, what } => write!(f, "{}: {what}", file.display()),
            Self::Build { suite, said } => write!(f, "{suite} does not build as it is:\n{said}"),
            Self::Red { test, said } => write!(f, "{test} fails as it is: {said}"),
            Self::OtherSources(path) => {
                write!(f, "{}: these results are of other sources than there are now", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::File { source, .. } => Some(source),
            _ => None,
        }
    }
}
