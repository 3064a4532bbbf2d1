//! What can go wrong with the tool itself; that a mutant is not caught is no error of its.

use std::path::{Path, PathBuf};
use std::{fmt, io};

/// Why the tool cannot go on.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file or directory cannot be used.
    File {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file has something in it that is not understood.
    Unclear {
        /// Its path.
        file: PathBuf,
        /// What and where.
        what: String,
    },
    /// The sources as they are do not build.
    Build {
        /// For which suite.
        suite: &'static str,
        /// What cargo said.
        said: String,
    },
    /// A test fails as the sources are.
    Red {
        /// Its name.
        test: String,
        /// What it said.
        said: String,
    },
    /// A file of results is of other sources than these.
    OtherSources(PathBuf),
}

impl Error {
    /// For `map_err`.
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
