//! What may be wrong with a command line.

use std::fmt;

/// What marks a child process of a program; not meant for people.
pub const CHILD: &str = "--child";

/// Why a command line was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum ArgError {
    /// No option has this name.
    Unknown(String),
    /// The option needs a value and was last on the line.
    NoValue(String),
    /// The option does not take this value; what it does take.
    BadValue {
        /// Its name.
        option: String,
        /// What stood there.
        value: String,
        /// What may stand there.
        wanted: String,
    },
    /// A child process was given something that it cannot measure.
    BadChild(Vec<String>),
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(option) => write!(f, "there is no option {option}"),
            Self::NoValue(option) => write!(f, "{option} needs a value"),
            Self::BadValue { option, value, wanted } => {
                write!(f, "{option} is {value:?}; it must be {wanted}")
            }
            Self::BadChild(words) => write!(f, "{CHILD} cannot measure {words:?}"),
        }
    }
}

impl std::error::Error for ArgError {}
