//! Identifies a library by its file, without loading it.

use std::path::Path;
use std::sync::OnceLock;
use std::time::SystemTime;

use kiln_cuda::nvrtc::NvrtcError;
use kiln_cuda::{LibraryKind, SearchEnvironment};

use crate::error::CodeError;

/// The file of a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LibraryFile {
    identity: String,
}

impl LibraryFile {
    /// The compiler of this process. A failure to find it is not remembered; the next call looks again.
    pub(super) fn compiler() -> Result<&'static Self, CodeError> {
        static FOUND: OnceLock<LibraryFile> = OnceLock::new();
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let found = SearchEnvironment::of_process().find(LibraryKind::Nvrtc).map_err(NvrtcError::from)?;
        let file = Self::at(&found.path);
        Ok(FOUND.get_or_init(|| file))
    }

    fn at(path: &Path) -> Self {
        // The name behind all links has the whole version; size and time tell a build from another under the same name.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let (bytes, modified) =
            path.metadata().map_or((0, None), |about| (about.len(), about.modified().ok()));
        let modified = modified.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |time| time.as_nanos());
        Self { identity: format!("{name}, {bytes} bytes, {modified}") }
    }

    /// Text that another build of the library does not have.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }
}

/// Text that another build of cuBLASLt does not have; none where there is no such library.
pub fn cublaslt_identity() -> Option<String> {
    let found = SearchEnvironment::of_process().find(LibraryKind::CublasLt).ok()?;
    Some(LibraryFile::at(&found.path).identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_is_another_file_and_a_link_is_the_same() {
        let folder = std::env::temp_dir().join(format!("kiln-library-file-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (file, link) = (folder.join("libnvrtc.so.13.0.48"), folder.join("libnvrtc.so.13"));
        std::fs::write(&file, "one").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let first = LibraryFile::at(&file);
        assert_eq!(LibraryFile::at(&link), first);
        std::fs::write(&file, "another").unwrap();
        assert_ne!(LibraryFile::at(&link), first, "as large");
        std::fs::write(&file, "one").unwrap();
        std::fs::File::open(&file).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert_ne!(LibraryFile::at(&link), first, "as old");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
