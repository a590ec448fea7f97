//! The programs that open an address in the browser of a person.

/// Programs that open an address, and their arguments before it.
#[cfg(target_os = "macos")]
pub const BROWSER_OPENERS: &[(&str, &[&str])] = &[("open", &[])];
/// Programs that open an address, and their arguments before it.
#[cfg(windows)]
pub const BROWSER_OPENERS: &[(&str, &[&str])] =
    &[("rundll32.exe", &["url.dll,FileProtocolHandler"])];
/// Programs that open an address, and their arguments before it.
#[cfg(not(any(target_os = "macos", windows)))]
pub const BROWSER_OPENERS: &[(&str, &[&str])] =
    &[("xdg-open", &[]), ("wslview", &[]), ("gio-open", &[])];

/// The variables of which one is set if there is a desktop; empty if there is always one.
#[cfg(any(target_os = "macos", windows))]
pub const DESKTOP_VARIABLES: &[&str] = &[];
/// The variables of which one is set if there is a desktop; empty if there is always one.
#[cfg(not(any(target_os = "macos", windows)))]
pub const DESKTOP_VARIABLES: &[&str] = &["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"];
