//! Several devices of one process as a group.
//!
//! ```text
//!                      DeviceGroup
//!        ┌──────────────────┼──────────────────┐
//!   DeviceRuntime 0    DeviceRuntime 1    DeviceRuntime 2        each orders its own work
//!        └──── peer link ───┘                  │
//!        └──────────── through the host ───────┘                 ordered on both devices
//! ```
//!
//! - **Copies** between devices are ordered with everything else that uses the two buffers, on both devices: they wait for the last writer of
//!   the source and for all users of the destination, and later work waits for them. Where the two devices can, the copy is direct and does not block;
//!   otherwise it goes through host memory. [`PeerAccess`] says which.
//! - A [`ShardedBuffer`] has one part on each device; [`DeviceGroup::scatter`] and [`DeviceGroup::gather`] copy to and from one buffer.
//! - A [`SharedBuffer`] is the same physical memory mapped on every device.
//! - **Load** is measured per device, and [`DeviceGroup::submit`] runs work on the device that is likely to finish first. A device that fails is
//!   not fast: failures do not count as measurements, and it is avoided.
//! - A [`DeviceCommunicator`] is one rank of several that exchange data in collectives: all-reduce, broadcast, all-gather and so on, over NCCL on GPUs. One
//!   rank alone needs no NCCL.
//! - A [`RankEnvironment`] says which rank of how many this process is, as `torchrun`, Slurm, MPI and Kubernetes tell it in environment variables.
//! - A [`Rendezvous`] is where the ranks of a job meet: they exchange small values through rank 0, and are told when a rank is lost.
//! - A [`Topology`] says how the devices of many ranks are connected, as a line of text, and estimates how long collectives take over it. A
//!   [`CollectiveTrace`] records those of a program.
//! - **A lost rank** is told to the others, which go on with a communicator without it: [`DeviceCommunicator::rebuild`].
//! - **A lost device** fails what uses it, with an error that names it. The others go on.
//!
//! ```
//! use kiln::sim::{DeviceConfig, Machine, MachineConfig};
//! use kiln::group::{DeviceGroup, PeerAccess};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
//! let machine = Machine::new(config);
//! let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
//! assert_eq!(group.peer_access(0, 1)?, PeerAccess::Direct);
//!
//! let there = group.runtime(0)?.upload(&[1_u32, 2, 3])?;
//! let here = group.runtime(1)?.zeros::<u32>(3)?;
//! group.copy(&there, &here)?; // does not wait
//! there.fill(0)?; // comes after the copy
//! assert_eq!(here.download()?, [1, 2, 3]);
//! # Ok(())
//! # }
//! ```
//!
//! # Reading order
//!
//! [`DeviceGroup`], [`PeerAccess`], [`GroupTicket`], [`GroupError`]; [`ShardedBuffer`], [`SharedBuffer`]; [`DeviceCommunicator`], [`CollectiveCall`];
//! [`DeviceLoad`]; [`RankEnvironment`], [`Rendezvous`], [`RendezvousError`]; [`Topology`], [`CollectiveEstimate`].
//!
//! # What it does not do
//!
//! It splits no kernels. Copies and shared buffers connect devices of one process; collectives also connect processes.

mod abort;
mod alone_id;
mod bridge;
mod call_log;
mod called_collective;
mod collective_call;
mod collective_overdue;
mod collective_part;
mod collective_text;
mod collective_trace;
mod collectives;
mod communicator;
mod communicator_config;
mod communicator_failure;
mod compared_groups;
mod copy;
mod deadline;
mod device_group;
mod device_load;
mod ended_communicator;
mod error;
mod few;
mod given_up_collectives;
mod job_ranks;
mod known_functions;
mod late_ranks;
mod launcher;
mod ledger;
mod link_streams;
mod lost_device;
mod meet;
mod membership;
mod noted_call;
mod one_rank;
mod peer_access;
mod peer_link;
mod rank_environment;
mod rank_environment_error;
mod rank_list;
mod rank_loss;
mod rank_watch;
mod rebuild;
mod rebuild_calls;
mod remembered_call;
mod rendezvous;
mod repeat;
mod replacement;
mod seat;
mod sharded_buffer;
mod shared_buffer;
mod shared_pages;
mod slurm_nodes;
mod slurm_tasks;
mod split;
mod submit;
mod ticket;
mod topology;
mod transfer;
mod transfer_order;

pub use called_collective::CalledCollective;
pub use collective_call::CollectiveCall;
pub use collective_overdue::CollectiveOverdue;
pub use collective_trace::{CollectiveTrace, CollectiveTraceError, TraceTime, TracedCollective};
pub use communicator::DeviceCommunicator;
pub use communicator_config::DeviceCommunicatorConfig;
pub use communicator_failure::CommunicatorFailed;
pub use device_group::DeviceGroup;
pub use device_load::DeviceLoad;
pub use error::{GroupError, Result};
pub use kiln_operation::{CollectiveElement, CollectiveKind, CollectiveType, CommunicatorId, Reduction};
pub use launcher::Launcher;
pub use peer_access::{PeerAccess, PeerMatrix};
pub use rank_environment::{MeetingPoint, RankEnvironment};
pub use rank_environment_error::RankEnvironmentError;
pub use rank_loss::CommunicatorRankLost;
pub use rebuild::RebuiltCommunicator;
pub use rendezvous::{
    LostRank, Rendezvous, RendezvousCall, RendezvousCallKind, RendezvousConfig, RendezvousError,
};
pub use replacement::RankVacancy;
pub use sharded_buffer::ShardedBuffer;
pub use shared_buffer::SharedBuffer;
pub use ticket::GroupTicket;
pub use topology::{CollectiveAlgorithm, CollectiveEstimate, HostLink, LinkSpeed, Topology, TopologyError};
