//! Reading files that are limited in size.

use std::{
    fs::File,
    io::{self, Read as _},
};

/// Reads a file to its end. Fails if the file is longer than `bytes_max`.
pub fn read_bounded(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {bytes_max} bytes"),
        ));
    }
    Ok(bytes)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use files::open_private;

    use super::read_bounded;

    #[test]
    fn a_file_that_others_may_read_is_refused_and_a_link_too() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "12345").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = open_private(&file).unwrap_err().to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(open_private(&link).is_err());
        assert_eq!(
            read_bounded(open_private(&file).unwrap(), 5).unwrap(),
            b"12345"
        );
        assert!(read_bounded(open_private(&file).unwrap(), 4).is_err());
    }
}
