//! What the tests of files share.

use std::fs;
use std::path::PathBuf;

/// A directory for one test, removed at its end.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("order-reconciliation-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).expect("a temporary file");
        self.file(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
