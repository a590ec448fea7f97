//! The daemon's log: a file of bounded size beside its state.

use std::{
    io,
    path::{Path, PathBuf},
};

use files::BoundedLog;
use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

/// Returns the log file of the daemon of a configuration. Earlier entries are in a file with `.1`
/// after the name.
pub fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("daemon.log")
}

/// The log as `tracing` writes to it. A line that cannot be written is lost, and nothing else.
#[derive(Debug)]
pub struct LogWriter(Mutex<BoundedLog>);

impl LogWriter {
    /// The log in this state folder.
    pub fn new(state_dir: &Path) -> Self {
        Self(Mutex::new(BoundedLog::new(path(state_dir))))
    }
}

impl io::Write for &LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut log = self.0.lock();
        let _ = log.append(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogWriter {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}
