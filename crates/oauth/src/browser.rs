//! Opens a person's browser at an address that a remote server chose.

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::{Command, Stdio},
};

use http_core::is_loopback;
use processes::{BROWSER_OPENERS, DESKTOP_VARIABLES, keep_apart};
use reqwest::Url;

/// Returns true if there is a browser that the person would see: not over SSH, nor without a desktop.
pub fn can_open_browser(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    if is_set("SSH_CONNECTION") || is_set("SSH_TTY") {
        return false;
    }
    DESKTOP_VARIABLES.is_empty() || DESKTOP_VARIABLES.iter().any(|name| is_set(name))
}

/// Opens the address. No shell reads it: it is one argument, serialized from the parsed URL, and begins
/// with its scheme.
pub fn open_browser(url: &Url, browser: Option<OsString>) -> io::Result<()> {
    if !may_be_opened(url) {
        let why = "it is neither https nor on this machine";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let named = browser.filter(|it| !it.is_empty());
    let named = named.as_deref().and_then(first_program);
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    let named = named.iter().map(|program| (program.as_os_str(), &[][..]));
    let usual = BROWSER_OPENERS.iter();
    let usual = usual.map(|(program, args)| (OsStr::new(*program), *args));
    for (program, args) in named.chain(usual) {
        match start(program, args, url) {
            Ok(()) => return Ok(()),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Returns the first program in `BROWSER`, which is a list. A program with arguments would require a
/// shell, and is ignored.
fn first_program(list: &OsStr) -> Option<OsString> {
    let first = list.to_str()?.split(':').next()?;
    let is_program = !first.is_empty() && !first.contains(char::is_whitespace);
    is_program.then(|| OsString::from(first))
}

fn start(program: &OsStr, args: &[&str], url: &Url) -> io::Result<()> {
    let mut command = Command::new(Path::new(program));
    command
        .args(args)
        .arg(url.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    keep_apart(&mut command);
    let mut opener = command.spawn()?;
    // The opener may be the browser itself, which keeps running; either way its exit is waited for.
    std::thread::spawn(move || opener.wait());
    Ok(())
}

fn may_be_opened(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use reqwest::Url;

    use super::{can_open_browser, first_program, may_be_opened};

    #[test]
    fn only_addresses_of_the_web_are_opened() {
        let check = |text: &str, is_opened: bool| {
            assert_eq!(
                may_be_opened(&Url::parse(text).unwrap()),
                is_opened,
                "{text}"
            );
        };
        check("https://as.example/authorize?a=$(id)", true);
        check("http://127.0.0.1:1/authorize", true);
        check("http://as.example/authorize", false);
        check("file:///etc/passwd", false);
        check("javascript:alert(1)", false);
        check("calculator:", false);
    }

    #[test]
    fn what_would_need_a_shell_is_no_browser() {
        let first = |list: &str| first_program(list.as_ref());
        assert_eq!(first("firefox:lynx"), Some(OsString::from("firefox")));
        assert_eq!(first("sh -c 'x %s'"), None);
        assert_eq!(first(""), None);
    }

    #[test]
    fn a_session_over_ssh_has_no_browser() {
        let can = |set: &'static [&'static str]| {
            can_open_browser(|name| set.contains(&name).then(|| OsString::from("1")))
        };
        assert!(can(&["DISPLAY"]) && can(&["BROWSER"]));
        assert!(!can(&["DISPLAY", "SSH_CONNECTION"]));
        assert_eq!(can(&[]), super::DESKTOP_VARIABLES.is_empty());
    }
}
