//! The files of the page, as `build.rs` embeds them.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    /// Its path below `assets/`.
    pub(crate) name: &'static str,
    /// Its content type.
    pub(crate) kind: &'static str,
    /// Its content, compressed.
    pub(crate) gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The first page.
pub(crate) const INDEX: &str = "index.html";

/// Returns the file of a path below `/assets/`.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    let name = path.strip_prefix(DIGEST)?.strip_prefix('/')?;
    find_name(name).filter(|it| it.name != INDEX)
}

pub(crate) fn find_name(name: &str) -> Option<&'static Asset> {
    FILES.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole page is part of the program.
    const BYTES_MAX: usize = 150 * 1024;

    #[test]
    fn the_page_is_small_and_every_file_is_found_by_its_digest_only() {
        assert!(FILES.iter().map(|it| it.gzip.len()).sum::<usize>() <= BYTES_MAX);
        assert!(find_name(INDEX).is_some());
        for file in FILES.iter().filter(|it| it.name != INDEX) {
            assert!(find(&format!("{DIGEST}/{}", file.name)).is_some());
            assert!(find(file.name).is_none());
        }
        assert!(find(&format!("{DIGEST}/../Cargo.toml")).is_none());
    }
}
