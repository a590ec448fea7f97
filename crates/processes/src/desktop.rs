//! The programs that open an address in the browser of a person.

/// Programs that open an address, and their arguments before it.
pub const BROWSER_OPENERS: &[(&str, &[&str])] = if cfg!(target_os = "macos") {
    &[("open", &[])]
} else if cfg!(windows) {
    &[("rundll32.exe", &["url.dll,FileProtocolHandler"])]
} else {
    &[("xdg-open", &[]), ("wslview", &[]), ("gio-open", &[])]
};

/// The variables of which one is set if there is a desktop; empty if there is always one.
pub const DESKTOP_VARIABLES: &[&str] = if cfg!(any(target_os = "macos", windows)) {
    &[]
} else {
    &["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"]
};
