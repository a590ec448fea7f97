//! The log file of a server's stderr.

use files::clock::{show_time, to_ms};
use std::{
    mem,
    path::{Path, PathBuf},
    time::SystemTime,
};

use files::BoundedLog;
use tokio::{
    sync::mpsc::{self, Receiver, Sender, error::TrySendError},
    task::{JoinHandle, spawn_blocking},
};
use tool::ServerName;
use tracing::debug;

use crate::limits::{LOG_BATCH_LINES, LOG_WAITING_LINES_MAX};

/// Returns the log file of a server's stderr. Older lines are in a file beside it whose name ends with
/// `.1`.
pub fn log_path(folder: &Path, server: &ServerName) -> PathBuf {
    folder.join(format!("{server}.log"))
}

/// A log whose lines wait for the disk. If the disk is too slow, lines are left out and counted,
/// because a server blocks while its stderr is not read.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Sender<LogLine>,
    writer: JoinHandle<()>,
    left_out: usize,
}

#[derive(Debug)]
struct LogLine {
    at: SystemTime,
    text: String,
    left_out_before: usize,
}

impl Log {
    /// Opens no file yet: a server that writes nothing has no log.
    pub(crate) fn new(path: PathBuf) -> Self {
        let (lines, waiting) = mpsc::channel(LOG_WAITING_LINES_MAX);
        Self {
            lines,
            writer: tokio::spawn(write(waiting, BoundedLog::new(path))),
            left_out: 0,
        }
    }

    /// Queues a line, or counts it as left out. Never waits.
    pub(crate) fn push(&mut self, text: String) {
        let line = LogLine {
            at: SystemTime::now(),
            text,
            left_out_before: self.left_out,
        };
        self.left_out = match self.lines.try_send(line) {
            Ok(()) => 0,
            Err(TrySendError::Full(_) | TrySendError::Closed(_)) => self.left_out + 1,
        };
    }

    /// Waits until all lines are written.
    pub(crate) async fn end(self) {
        if self.left_out > 0 {
            let last = LogLine {
                at: SystemTime::now(),
                text: String::new(),
                left_out_before: self.left_out,
            };
            let _ = self.lines.send(last).await;
        }
        drop(self.lines);
        let _ = self.writer.await;
    }
}

/// Writes the lines off the event loop, because the disk may be slow.
async fn write(mut waiting: Receiver<LogLine>, mut log: BoundedLog) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, LOG_BATCH_LINES).await > 0 {
        let lines = mem::take(&mut batch);
        let written = spawn_blocking(move || {
            write_lines(&mut log, &lines);
            log
        });
        match written.await {
            Ok(back) => log = back,
            // The runtime is ending.
            Err(_) => return,
        }
    }
}

fn write_lines(log: &mut BoundedLog, lines: &[LogLine]) {
    let text: String = lines.iter().map(LogLine::text).collect();
    if let Err(error) = log.append(text.as_bytes()) {
        debug!(path = %log.path().display(), %error, "lines of stderr were not kept");
    }
}

impl LogLine {
    fn text(&self) -> String {
        let at = show_time(to_ms(self.at));
        let text = &self.text;
        match self.left_out_before {
            0 => format!("{at} {text}\n"),
            count if text.is_empty() => format!("{at} ({count} lines left out)\n"),
            count => format!("{at} ({count} lines left out)\n{at} {text}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Log, log_path};
    use crate::limits::LOG_WAITING_LINES_MAX;

    #[tokio::test]
    async fn lines_that_the_disk_is_too_slow_for_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = log_path(folder.path(), &"notes".parse().unwrap());
        let mut log = Log::new(path.clone());
        // On one thread the writer cannot run before this test waits.
        for number in 0..LOG_WAITING_LINES_MAX + 7 {
            log.push(number.to_string());
        }
        while log.lines.capacity() == 0 {
            tokio::task::yield_now().await;
        }
        log.push("after".to_owned());
        log.left_out = 3;
        log.end().await;
        let text = fs::read_to_string(&path).unwrap();
        let told: Vec<&str> = text.lines().map(|line| &line[25..]).collect();
        let last = ["(7 lines left out)", "after", "(3 lines left out)"];
        assert_eq!(told[LOG_WAITING_LINES_MAX..], last);
    }
}
