//! The folder of a run: the library under the name that programs look for, and what they found.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Names that are tried before the folder for temporary files counts as unusable.
const TRIES: u32 = 100;

/// What separates the folders of `LD_LIBRARY_PATH`, and what begins a name in it that the loader replaces.
const LOADER_MARKS: [u8; 3] = [b':', b';', b'$'];

/// A folder that only its owner can read; it is removed when this is dropped.
pub(super) struct PrivateFolder {
    path: PathBuf,
}

impl PrivateFolder {
    /// Makes the folder, with the library in it: as the driver's, and as that of NVML if it stands for that, too.
    pub(super) fn new(library: &Path, has_management: bool) -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        if let Some(mark) =
            LOADER_MARKS.into_iter().find(|mark| parent.as_os_str().as_encoded_bytes().contains(mark))
        {
            let mark = char::from(mark);
            let message = format!(
                "its name has a `{mark}`, which means something else in the list of folders of the program's loader"
            );
            return Err(Failure::file(&parent, message).next("set TMPDIR to a folder with another name"));
        }
        let path = fresh(&parent).map_err(|error| {
            let next = "set TMPDIR to a folder in which files can be made";
            Failure::file(&parent, format_args!("no folder can be made in it: {error}")).next(next)
        })?;
        let folder = Self { path };
        let names = ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1", "libnvidia-ml.so"];
        for name in &names[..if has_management { 4 } else { 2 }] {
            link(library, &folder.path.join(name)).map_err(|error| Failure::file(&folder.path, error))?;
        }
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the program's loader looks: here first.
    pub(super) fn loader_path(&self) -> OsString {
        let mut path = self.path.clone().into_os_string();
        if let Some(before) = std::env::var_os("LD_LIBRARY_PATH").filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        path
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // A process that the program left behind may still write into it; then it stays.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn fresh(parent: &Path) -> io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    let process = std::process::id();
    for number in 0..TRIES {
        let path = parent.join(format!("kiln-exec-{process}-{number}"));
        match builder.create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(unix)]
fn link(library: &Path, name: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(library, name)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
