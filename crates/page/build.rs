//! Embeds the files below `assets/`: compressed, and under one digest over all of them.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use sha2::{Digest as _, Sha256};

/// The digits of the digest in addresses.
const DIGEST_DIGITS: usize = 16;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let root = Path::new("assets");
    let mut paths = Vec::new();
    list(root, &mut paths)?;
    paths.sort();
    let files: Vec<(String, Vec<u8>)> = paths
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(root).expect("it is below the folder");
            let name = name.to_str().expect("names are ASCII").replace('\\', "/");
            Ok((name, fs::read(&path)?))
        })
        .collect::<io::Result<_>>()?;
    let mut all = Sha256::new();
    for (name, bytes) in &files {
        all.update(format!("{name} {}\n", bytes.len()));
        all.update(bytes);
    }
    let digest = hex::encode(all.finalize())[..DIGEST_DIGITS].to_owned();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut table = format!(
        "pub(crate) const DIGEST: &str = {digest:?};\npub(crate) const FILES: &[Asset] = &[\n"
    );
    for (at, (name, bytes)) in files.iter().enumerate() {
        let kind = kind_of(name)
            .unwrap_or_else(|| panic!("assets/{name}: a kind of file that is not served"));
        let bytes = if name == "index.html" {
            let text = String::from_utf8(bytes.clone()).expect("it is text");
            text.replace("\"/assets/", &format!("\"/assets/{digest}/"))
                .into_bytes()
        } else {
            bytes.clone()
        };
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let place = out.join(format!("{at}.gz"));
        fs::write(&place, encoder.finish()?)?;
        let place = place.to_str().expect("the folder's name is text");
        table.push_str(&format!(
            "    Asset {{ name: {name:?}, kind: {kind:?}, gzip: include_bytes!({place:?}) }},\n"
        ));
    }
    table.push_str("];\n");
    fs::write(out.join("assets.rs"), table)
}

fn list(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

fn kind_of(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.').map_or(name, |(_, end)| end) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "woff2" => "font/woff2",
        "txt" | "LICENSE" => "text/plain; charset=utf-8",
        _ => return None,
    })
}
