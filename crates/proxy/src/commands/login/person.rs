//! The person at the terminal, who logs in.

use std::io::{BufRead as _, IsTerminal as _};

use futures::{FutureExt as _, future::BoxFuture};
use oauth::{LoginError, Person, open_browser};
use reqwest::Url;
use tokio::sync::{Mutex, mpsc};

use crate::report;

/// The number of lines that are buffered; a pasted address has no more.
const LINES_MAX: usize = 8;

/// Shows the address for the login, and reads the pasted answer.
pub(super) struct Terminal {
    opens_browser: bool,
    lines: Mutex<mpsc::Receiver<String>>,
}

impl Terminal {
    pub(super) fn new(opens_browser: bool) -> Self {
        let (sender, lines) = mpsc::channel(LINES_MAX);
        // A read of a terminal cannot be cancelled; it ends with the program.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if !line.trim().is_empty() && sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            opens_browser,
            lines: Mutex::new(lines),
        }
    }
}

impl Person for Terminal {
    fn visit(&self, url: &Url) {
        let host = url.host_str().unwrap_or_default();
        let say = |error: &_| report::say(&format!("no browser was opened: {error}"));
        let open = || open_browser(url, std::env::var_os("BROWSER"));
        let opened = self.opens_browser && open().inspect_err(say).is_ok();
        if opened {
            report::say(&format!(
                "your browser opens {host}; if it does not, open this address:"
            ));
        } else {
            report::say(&format!("log in at {host}:"));
        }
        report::print_data(url.as_str());
        if !opened && std::io::stdin().is_terminal() {
            report::say(
                "if the browser is on another machine, it stops at an address that it cannot open: \
                 paste that address here",
            );
        }
    }

    fn enter(&self, url: &Url, code: &str) {
        report::say(&format!("enter the code {code} at:"));
        report::print_data(url.as_str());
    }

    fn reject(&self, why: &LoginError) {
        report::say(&why.to_string());
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        async {
            let mut lines = self.lines.lock().await;
            match lines.recv().await {
                Some(line) => line,
                // No more input can come.
                None => std::future::pending().await,
            }
        }
        .boxed()
    }
}
