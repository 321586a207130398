//! Whether this machine can isolate a device, looked at without starting anything.

use std::io;
use std::path::PathBuf;

use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

use crate::area::{AREA_BYTES, Area};
use crate::shared_file::SharedFile;
use crate::socket::Socket;

/// Where the control daemon of CUDA's Multi-Process Service puts its pipes, below the folder for temporary files, unless
/// a variable names another place.
const MPS_FOLDER: &str = "nvidia-mps";
const MPS_VARIABLE: &str = "CUDA_MPS_PIPE_DIRECTORY";
const MPS_PIPE: &str = "control";

/// What a worker process needs of the system, and how much of it there is.
///
/// ```
/// use kiln_isolate::Readiness;
///
/// let readiness = Readiness::of_this_machine();
/// if let Err(error) = &readiness.shared_memory {
///     println!("no worker can be started here: {error}");
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Readiness {
    /// Memory files can be made, sealed and mapped, and a socket pair made.
    pub shared_memory: io::Result<()>,
    /// The system hands out handles of processes, by which the end of a worker is noticed.
    pub process_handles: io::Result<()>,
    /// Descriptors this process may have at a time; none is no limit.
    pub descriptor_limit: Option<u64>,
    /// Descriptors it has now, where the system can tell.
    pub descriptors_open: Option<u64>,
    /// The control pipe of a Multi-Process Service. Its clients share one context's fate: a fault of one of them is a
    /// fault of all.
    pub mps: Option<PathBuf>,
}

impl Readiness {
    /// Descriptors of a worker and its standby; each piece of device memory and each host block takes one more.
    pub const DESCRIPTORS_NEEDED: u64 = 16;

    /// Looks at this process and its machine.
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

    /// Descriptors that can still be had; none is no limit.
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
    let file = SharedFile::create(AREA_BYTES)?;
    Area::map(&file)?;
    Socket::pair().map(drop)
}
