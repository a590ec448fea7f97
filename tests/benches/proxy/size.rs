//! (f) Size of the program.

use std::{fs, path::Path};

use crate::figures::Figures;

pub(crate) fn run(proxy: &Path, figures: &mut Figures) {
    measure(proxy, figures);
    let released = proxy.with_file_name("proxy");
    if released.exists() {
        measure(&released, figures);
    }
}

fn measure(program: &Path, figures: &mut Figures) {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let bytes = fs::metadata(program).expect("the program is built").len();
    let kilobytes = u32::try_from(bytes / 1024).expect("a program is not that large");
    let megabytes = f64::from(kilobytes) / 1024.0;
    figures.number("size", &format!("`{name}`"), megabytes, "MB");
}
