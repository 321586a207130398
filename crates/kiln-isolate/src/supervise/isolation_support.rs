//! Whether this machine can isolate a device, found out without starting a process.

use std::io;
use std::path::PathBuf;

use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

use crate::protocol::memory_file::MemoryFile;
use crate::protocol::segment::{SEGMENT_BYTES, Segment};
use crate::protocol::socket::Socket;

/// The folder of the pipes of CUDA's Multi-Process Service, below the folder for temporary files, unless a variable names another.
const MPS_FOLDER: &str = "nvidia-mps";
const MPS_VARIABLE: &str = "CUDA_MPS_PIPE_DIRECTORY";
const MPS_PIPE: &str = "control";

/// What a worker process needs from the system, and whether this system provides it.
///
/// ```
/// use kiln_isolate::IsolationSupport;
///
/// let support = IsolationSupport::of_this_machine();
/// if let Err(error) = &support.shared_memory {
///     println!("no worker can be started here: {error}");
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct IsolationSupport {
    /// Whether memory files can be created, sealed and mapped, and socket pairs created.
    pub shared_memory: io::Result<()>,
    /// Whether the system has process descriptors (pidfd), which tell when a worker ends.
    pub process_handles: io::Result<()>,
    /// How many descriptors this process may have open; `None` is no limit.
    pub descriptor_limit: Option<u64>,
    /// How many it has open, where the system can tell.
    pub descriptors_open: Option<u64>,
    /// The control pipe of a Multi-Process Service, if one runs. A fault of one of its clients is a fault of all of them, so workers
    /// are not isolated from each other.
    pub mps: Option<PathBuf>,
}

impl IsolationSupport {
    /// Descriptors that a worker and its standby need. Each allocation of pages and each host block needs one more.
    pub const DESCRIPTORS_NEEDED: u64 = 16;

    /// Examines this process and its machine.
    pub fn of_this_machine() -> Self {
        let usual = || std::env::temp_dir().join(MPS_FOLDER);
        let folder = std::env::var_os(MPS_VARIABLE).map_or_else(usual, PathBuf::from);
        let own = || std::fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count() as u64);
        Self {
            shared_memory: share_memory(),
            process_handles: pidfd_open(getpid(), PidfdFlags::empty()).map(drop).map_err(io::Error::from),
            descriptor_limit: getrlimit(Resource::Nofile).current,
            descriptors_open: own(),
            mps: Some(folder.join(MPS_PIPE)).filter(|pipe| pipe.exists()),
        }
    }

    /// How many more descriptors this process may open; `None` is no limit.
    pub fn descriptors_left(&self) -> Option<u64> {
        Some(self.descriptor_limit?.saturating_sub(self.descriptors_open.unwrap_or(0)))
    }

    /// Whether a worker can be expected to start.
    pub fn is_ready(&self) -> bool {
        let enough = self.descriptors_left().is_none_or(|left| left >= Self::DESCRIPTORS_NEEDED);
        self.shared_memory.is_ok() && self.process_handles.is_ok() && enough
    }
}

fn share_memory() -> io::Result<()> {
    let file = MemoryFile::create(SEGMENT_BYTES)?;
    Segment::map(&file)?;
    Socket::pair().map(drop)
}
