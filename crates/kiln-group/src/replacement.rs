//! Replacements of lost ranks.

use std::sync::Arc;

use kiln_driver::Health;
use kiln_runtime::DeviceRuntime;

use crate::communicator::DeviceCommunicator;
use crate::communicator_config::DeviceCommunicatorConfig;
use crate::error::{GroupError, Result};
use crate::job_ranks::{self, Job};
use crate::lost_device::{health_beside, lost_device};
use crate::meet::members;
use crate::membership::Membership;
use crate::rebuild::RebuiltCommunicator;
use crate::rendezvous::Rendezvous;
use crate::seat::Seat;

/// The place of a lost rank, for a replacement in the same process. Made by [`DeviceCommunicator::vacancy`].
#[derive(Clone)]
pub struct RankVacancy {
    membership: Arc<Membership>,
    rank: u32,
    config: DeviceCommunicatorConfig,
}

impl RankVacancy {
    /// The lost rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Becomes the rank, with another device. It waits until all ranks that are left have called
    /// [`rebuild_replaced`](DeviceCommunicator::rebuild_replaced); so it needs a thread.
    ///
    /// # Errors
    /// A device that is lost, or that a rank has; ranks that do not call that within the deadline; a replacement that came before; what [`join`](DeviceCommunicator::join) answers.
    #[track_caller]
    pub fn take(&self, runtime: &DeviceRuntime) -> Result<RebuiltCommunicator> {
        let check = || match lost_device(runtime) {
            Some(source) => Err(GroupError::Rank { rank: self.rank, source }),
            None => Ok(()),
        };
        check()?;
        let is_lost = || matches!(health_beside(&**runtime.driver()), Health::Lost(_));
        let applicant = (runtime.info().key, is_lost);
        let Some(seat) = self.membership.apply(self.rank, applicant, self.config.deadline)? else {
            check()?;
            let what =
                format!("the device that was to replace rank {} was lost, and rebuilt since", self.rank);
            return Err(GroupError::Collective { what, next: "take the place again" });
        };
        let ranks: Vec<u32> = (0..seat.size).collect();
        let members = self.membership.successor(seat.id, &ranks, 0);
        let seated = seated(runtime, seat, &self.config, &members);
        self.membership.note_come(&members);
        seated
    }
}

impl DeviceCommunicator {
    /// The place of a lost rank, for a replacement in this process: a thread with another device.
    ///
    /// # Errors
    /// That rank is not lost; the communicator was rebuilt already; the ranks are processes of a job.
    pub fn vacancy(&self, rank: u32) -> Result<RankVacancy> {
        let members = self.membership().filter(|members| members.lost().iter().any(|lost| lost.rank == rank));
        match members {
            Some(members) if members.is_rebuilt() => Err(GroupError::rebuilt_already(self.id())),
            Some(members) if members.job.is_none() => {
                Ok(RankVacancy { membership: members.clone(), rank, config: self.config() })
            }
            Some(_) => Err(GroupError::Collective {
                what: format!("rank {rank} of communicator {:?} is a process of a job", self.id()),
                next: "start a process that joins the job as this rank and calls `DeviceCommunicator::replace`",
            }),
            None => Err(GroupError::Collective {
                what: match rank < self.size() {
                    true => format!("rank {rank} of communicator {:?} is not lost", self.id()),
                    false => format!(
                        "there is no rank {rank} among the {} of communicator {:?}",
                        self.size(),
                        self.id()
                    ),
                },
                next: "replace a rank that an error names as lost",
            }),
        }
    }

    /// Becomes the rank of this process in the communicator of a job whose process was lost, in its place:
    /// [`is_replacement`](Rendezvous::is_replacement) says whether this process is one. It waits until all ranks that are left have called
    /// [`rebuild_replaced`](Self::rebuild_replaced).
    ///
    /// # Errors
    /// This process replaces none; what the rendezvous answers; what [`join`](Self::join) answers.
    #[track_caller]
    pub fn replace(
        runtime: &DeviceRuntime,
        rendezvous: &Arc<Rendezvous>,
        config: &DeviceCommunicatorConfig,
    ) -> Result<RebuiltCommunicator> {
        if !rendezvous.is_replacement() {
            return Err(GroupError::Collective {
                what: format!("rank {} of this job replaces no lost rank", rendezvous.rank()),
                next: "join the others with `DeviceCommunicator::meet`",
            });
        }
        let mut seat = job_ranks::apply(rendezvous)?;
        rendezvous.set_meetings(seat.meetings);
        let losses_seen = rendezvous.losses_seen();
        let job = Job { rendezvous: rendezvous.clone(), ranks: std::mem::take(&mut seat.job_ranks) };
        let members = members(runtime, seat.id, job, losses_seen)?;
        seated(runtime, seat, config, &members)
    }
}

/// Joins as a replacement. If that fails the others are told, who would wait.
#[track_caller]
fn seated(
    runtime: &DeviceRuntime,
    seat: Seat,
    config: &DeviceCommunicatorConfig,
    members: &Arc<Membership>,
) -> Result<RebuiltCommunicator> {
    let Seat { id, rank, size, done, repeatable, lost, .. } = seat;
    let joined = DeviceCommunicator::join_in(runtime, id, (rank, size), config, members);
    let communicator = joined.inspect_err(|error| {
        members.report(rank, format!("its replacement could not join: {error}"), None);
    })?;
    members.note_joined(rank);
    Ok(RebuiltCommunicator {
        communicator,
        replaced: lost.iter().map(|lost| lost.rank).collect(),
        lost,
        former_ranks: (0..size).collect(),
        done,
        done_here: 0,
        submitted: 0,
        repeatable,
        remembered: Arc::default(),
    })
}

impl std::fmt::Debug for RankVacancy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the place of lost rank {}", self.rank)
    }
}
