//! The ranks that take part in collectives.

use std::sync::Arc;

use kiln_runtime::{DeviceRuntime, Result};

use super::error::CollectiveError;

/// Which rank of how many a communicator is. The default is rank 0 of 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CommunicatorConfig {
    /// The rank of this process, counted from 0.
    pub rank: u32,
    /// The number of ranks.
    pub size: u32,
}

impl CommunicatorConfig {
    /// Rank `rank` of `size` ranks.
    pub const fn new(rank: u32, size: u32) -> Self {
        Self { rank, size }
    }

    /// The only rank.
    pub const fn single() -> Self {
        Self::new(0, 1)
    }
}

impl Default for CommunicatorConfig {
    fn default() -> Self {
        Self::single()
    }
}

/// A device as one rank of a group: what collectives such as [`Sequence::all_reduce`](crate::Sequence::all_reduce) take.
///
/// There are communicators of one rank today. Their collectives are copies on the device and need no library. A program that is written with them says
/// the same things with more ranks.
///
/// ```
/// use kiln::program::{Communicator, CommunicatorConfig};
///
/// let gpu = kiln::DeviceRuntime::simulated(1)?;
/// let world = Communicator::open(&gpu, CommunicatorConfig::single())?;
/// assert_eq!((world.rank(), world.size()), (0, 1));
///
/// let error = Communicator::open(&gpu, CommunicatorConfig::new(0, 8)).unwrap_err();
/// assert!(error.to_string().contains("8 ranks need NCCL"));
/// # Ok::<(), kiln::Error>(())
/// ```
#[derive(Clone)]
pub struct Communicator {
    runtime: DeviceRuntime,
    config: CommunicatorConfig,
}

impl Communicator {
    /// Opens the communicator of a device.
    ///
    /// # Errors
    /// A size of 0, a rank that is not below the size, or more than one rank, which this build cannot connect.
    pub fn open(runtime: &DeviceRuntime, config: CommunicatorConfig) -> Result<Self> {
        let CommunicatorConfig { rank, size } = config;
        match size {
            0 => Err(CollectiveError::NoRanks.into()),
            _ if rank >= size => Err(CollectiveError::Rank { rank, size }.into()),
            1 => Ok(Self { runtime: runtime.clone(), config }),
            _ => Err(CollectiveError::NotConnected { size }.into()),
        }
    }

    /// The rank of this process, counted from 0.
    pub fn rank(&self) -> u32 {
        self.config.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.config.size
    }

    /// Refuses work that is recorded for another device.
    pub(super) fn check_runtime(&self, runtime: &DeviceRuntime) -> Result<()> {
        match Arc::ptr_eq(self.runtime.driver(), runtime.driver()) {
            true => Ok(()),
            false => Err(CollectiveError::ForeignCommunicator.into()),
        }
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.size())
    }
}
