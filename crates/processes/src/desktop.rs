//! The programs that open an address in the browser of a person.

/// Programs that open an address.
#[cfg(target_os = "macos")]
pub const BROWSER_OPENERS: &[&str] = &["open"];
/// Programs that open an address.
#[cfg(not(target_os = "macos"))]
pub const BROWSER_OPENERS: &[&str] = &["xdg-open", "wslview", "gio-open"];

/// The variables of which one is set if there is a desktop; empty if there is always one.
#[cfg(target_os = "macos")]
pub const DESKTOP_VARIABLES: &[&str] = &[];
/// The variables of which one is set if there is a desktop; empty if there is always one.
#[cfg(not(target_os = "macos"))]
pub const DESKTOP_VARIABLES: &[&str] = &["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"];
