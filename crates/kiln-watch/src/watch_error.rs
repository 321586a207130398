//! Why a recording cannot be watched.

use std::io;
use std::path::PathBuf;

use kiln_trace::ReadError;

/// Why a recording cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The file cannot be read as a recording.
    #[error("{}: {error}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: ReadError,
    },
    /// Another program listens on the port.
    #[error("port {port} of the loopback interface is in use")]
    PortInUse {
        /// Which.
        port: u16,
    },
    /// The operating system gives no port.
    #[error("port {port} of the loopback interface cannot be opened: {error}")]
    NoPort {
        /// Which; 0 is any.
        port: u16,
        /// What the operating system says.
        error: io::Error,
    },
    /// The operating system gives no random numbers for the token.
    #[error("there are no random numbers for the token: {0}")]
    NoRandomNumbers(io::Error),
    /// The operating system gives no thread.
    #[error("a thread cannot be started: {0}")]
    NoThread(io::Error),
    /// What was asked for is not in the recording.
    #[error("{0}")]
    Unknown(&'static str),
}

impl WatchError {
    /// What to do about it.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::File { error, .. } => error.next_step(),
            Self::PortInUse { .. } => Some("give another with --port, or leave --port out for a free one"),
            Self::NoPort { port: 1..1024, .. } => Some("give a port above 1023, or leave --port out"),
            Self::NoPort { .. } => Some("leave --port out for a free one"),
            Self::NoRandomNumbers(_) => Some("make /dev/urandom readable"),
            Self::NoThread(_) => Some("end other programs, or raise the limit of processes (ulimit -u)"),
            Self::Unknown(_) => None,
        }
    }
}
