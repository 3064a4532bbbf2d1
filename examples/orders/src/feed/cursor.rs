//! How far a feed has come, in a file: the number of lines that each lane has answers for.
//!
//! The file is replaced a few times a second, and is not synced: after a crash of the feed, or of the
//! machine, the lines since then are sent again, and the server knows them.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The lines of one lane that are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    pub(crate) orders: usize,
    pub(crate) in_time: usize,
    pub(crate) late: usize,
    /// The latest check of an order that was answered, in ms.
    pub(crate) last_check_at: u64,
}

impl Cursor {
    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.orders + self.in_time + self.late
    }
}

/// What has to be the same when a feed is resumed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) to: String,
    pub(crate) orders: usize,
    pub(crate) payments: usize,
    /// A checksum of the files' lines. Other lines have another one, except by chance.
    pub(crate) checksum: u64,
    pub(crate) connections: usize,
    pub(crate) check_after_ms: u64,
    pub(crate) speed: Option<f64>,
}

/// The content of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Progress {
    pub(crate) job: Job,
    pub(crate) lanes: Vec<Cursor>,
}

impl Progress {
    /// Reads the file, if it is there.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut beside = path.to_owned().into_os_string();
        beside.push(".new");
        fs::write(&beside, serde_json::to_vec(self)?)?;
        fs::rename(&beside, path)
    }
}
