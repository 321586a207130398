//! Errors of recording what a runtime does.

use std::path::{Path, PathBuf};

/// The variable that names a file for a recording.
pub const TRACE_VARIABLE: &str = "KILN_TRACE";

/// Why a runtime is not recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// It is recorded already: by an earlier call, or because the environment asks for it.
    #[error(
        "the runtime is recorded already, to {}, and a recording lasts until its runtime ends; read that file, or, where {TRACE_VARIABLE} names it, unset {TRACE_VARIABLE} to choose another",
        path.display()
    )]
    AlreadyRecorded {
        /// The file that is being written, which goes on.
        path: PathBuf,
    },
    /// Another runtime is recorded into the file, in this process or another.
    #[error(
        "{} is being written by another recording; give another file to each runtime, or set {TRACE_VARIABLE}, which records all runtimes of a process into one",
        path.display()
    )]
    InUse {
        /// The file, which was left alone.
        path: PathBuf,
    },
    /// Events around every 0th submission were asked for.
    #[error(
        "events around every 0th submission are none; use `DeviceTimes::Events {{ every: 1 }}` or more, or `DeviceTimes::HostOnly`"
    )]
    NoSubmissions,
    /// `KILN_TRACE_TIMES` says no way to take the device's times.
    #[error("KILN_TRACE_TIMES: {0}")]
    Times(String),
    /// The name of the file is empty.
    #[error("the name of the recording is empty; name a file, such as trace.kiln")]
    NoName,
    /// The file cannot be written.
    #[error("the recording {} cannot be written: {reason}; {next_step}", path.display())]
    File {
        /// Where it was to be.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
        /// What to do about it.
        next_step: &'static str,
    },
}

impl RecordingError {
    pub(crate) fn file(path: &Path, error: &std::io::Error) -> Self {
        match error.kind() {
            _ if path.as_os_str().is_empty() => Self::NoName,
            std::io::ErrorKind::ResourceBusy => Self::InUse { path: path.to_owned() },
            kind => Self::File {
                path: path.to_owned(),
                reason: error.to_string(),
                next_step: match kind {
                    std::io::ErrorKind::PermissionDenied => {
                        "name a file that this user may write, in a folder of this user"
                    }
                    std::io::ErrorKind::NotFound => "make the folder, or name a file in one that exists",
                    std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                        "make room, or name a file on another disk"
                    }
                    std::io::ErrorKind::FileTooLarge => "allow larger files (`ulimit -f`)",
                    _ => "name another file, in a folder that exists",
                },
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn the_next_step_fits_what_the_system_says() {
        for (kind, step) in [
            (ErrorKind::PermissionDenied, "that this user may write"),
            (ErrorKind::NotFound, "make the folder"),
            (ErrorKind::StorageFull, "make room"),
        ] {
            let told = RecordingError::file(Path::new("a.kiln"), &Error::from(kind)).to_string();
            assert!(told.contains(step), "{told}");
        }
    }
}
