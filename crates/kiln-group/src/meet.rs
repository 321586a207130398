//! Communicators of all ranks of a job, and of all devices of a group.

use std::panic::Location;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, ShortTime};
use kiln_operation::CommunicatorId;
use kiln_runtime::DeviceRuntime;

use crate::bridge::spans_processes;
use crate::communicator::DeviceCommunicator;
use crate::communicator_config::DeviceCommunicatorConfig;
use crate::deadline::after;
use crate::device_group::DeviceGroup;
use crate::error::{GroupError, Result};
use crate::job_ranks::Job;
use crate::membership::Membership;
use crate::rendezvous::{
    EndingLosses, Rendezvous, RendezvousCall, RendezvousCallKind, RendezvousError, SILENT_WAIT, meeting_key,
};

impl DeviceCommunicator {
    /// Becomes the rank of this process in a communicator of all ranks of a job. It waits until rank 0 has made the id. A process that is lost is a lost rank.
    ///
    /// Each call makes another communicator: the first calls of all ranks are one, the second calls another one. So every rank calls it equally often, and one thread of a rank at a time. A
    /// replacement begins with the call that comes after the communicator in which it [took its place](Self::replace), and is refused before that. The same holds for a rank that left the job as planned and joined it again.
    ///
    /// A communicator that is made with a rank which is lost already takes no collectives: they fail at once with [`CommunicatorRankLost`](crate::CommunicatorRankLost), on every rank, and it can be rebuilt.
    ///
    /// # Errors
    /// As for [`join`](Self::join); what the rendezvous answers; [`GroupError::PlaceNotTaken`]; a rank that is lost meanwhile.
    #[track_caller]
    pub fn meet(
        runtime: &DeviceRuntime,
        rendezvous: &Arc<Rendezvous>,
        config: &DeviceCommunicatorConfig,
    ) -> Result<Self> {
        let failed = |error| GroupError::Rendezvous(Arc::new(error));
        let (rank, size) = (rendezvous.rank(), rendezvous.size());
        if size == 1 {
            return Self::alone(runtime);
        }
        if rendezvous.needs_place() {
            return Err(GroupError::PlaceNotTaken { rank });
        }
        let losses_seen = rendezvous.losses_seen();
        let number = rendezvous.begin_meeting();
        let key = meeting_key(number);
        let call = RendezvousCall::new(RendezvousCallKind::Meet, &number.to_string(), Location::caller());
        if rank == 0 {
            rendezvous.put(&key, Self::new_id(runtime)?.bytes()).map_err(failed)?;
        }
        if let Some(lost) = rendezvous.lost_ranks().map_err(failed)?.into_iter().find(|lost| lost.rank == 0)
            && rendezvous.value_now(&key).is_none()
        {
            return Err(without_rank_zero(&lost.cause));
        }
        let waited = rendezvous.timeout();
        let end = after(Instant::now(), waited);
        let ranks: Vec<u32> = (0..size).collect();
        // Losses that are known before end collectives, and not this.
        let losses = EndingLosses::Since(losses_seen, &ranks);
        let id = match await_id(rendezvous, (&call, &key), end, losses) {
            // Ranks that have the id already have the communicator.
            Err(lost @ RendezvousError::RankLost { .. }) => {
                rendezvous.value_now(&key).map_or(Err(lost), |found| Ok(Some(found)))
            }
            answered => answered,
        };
        let id = id.map_err(|error| match error {
            RendezvousError::RankLost { rank: 0, cause } => without_rank_zero(&cause),
            error => failed(error),
        })?;
        let id = id.ok_or_else(|| GroupError::Collective {
            what: format!("rank 0 has not made the id of the communicator within {}", ShortTime(waited)),
            next: "call `DeviceCommunicator::meet` on every rank of the job",
        })?;
        let id = CommunicatorId::try_from(&id[..]).map_err(GroupError::collective)?;
        let job = Job { rendezvous: rendezvous.clone(), ranks };
        let membership = members(runtime, id, job, losses_seen)?;
        Self::join_in(runtime, id, (rank, size), config, &membership)
    }
}

/// Waits for the id that rank 0 makes. Who waits for long says where; and where rank 0 waits instead is asked before the end, since it may give up at the same time.
fn await_id(
    rendezvous: &Rendezvous,
    (call, key): (&RendezvousCall, &str),
    end: Instant,
    losses: EndingLosses<'_>,
) -> std::result::Result<Option<Vec<u8>>, RendezvousError> {
    let ask = |until: Instant| rendezvous.get_while(0, ("the id of the communicator", key), until, losses);
    if let Some(id) = ask(end.min(Instant::now() + SILENT_WAIT))? {
        return Ok(Some(id));
    }
    rendezvous.waiting_in(call, || {
        let margin = (rendezvous.timeout() / 4).min(Duration::from_secs(1));
        if let Some(id) = ask(end.checked_sub(margin).unwrap_or(end))? {
            return Ok(Some(id));
        }
        let other = rendezvous.call_of(0, end)?;
        match (ask(end)?, other) {
            (None, Some(other)) => Err(rendezvous.other_call(call, (0, other), Some(rendezvous.timeout()))),
            (id, _) => Ok(id),
        }
    })
}

/// Rank 0, which makes the ids of communicators of all ranks, is lost.
fn without_rank_zero(cause: &str) -> GroupError {
    GroupError::Collective {
        what: format!("rank 0 is lost: {cause}; without it there is no new communicator of all ranks"),
        next: "go on with what `rebuild` makes of one that the ranks have, or start the job again",
    }
}

/// The ranks of a communicator as processes of a job, which had so many losses before.
pub(crate) fn members(
    runtime: &DeviceRuntime,
    id: CommunicatorId,
    job: Job,
    losses_seen: usize,
) -> Result<Arc<Membership>> {
    let size = job.ranks.len() as u32;
    let is_simulated = runtime.info().kind != DeviceKind::Cuda;
    let members = match is_simulated && spans_processes(&job.rendezvous)? {
        true => Membership::bridged(id, size, job, losses_seen),
        false => Membership::of_job(id, size, job, losses_seen),
    };
    // Ranks that are lost already are known before the first collective.
    members.look(false);
    Ok(members)
}

impl DeviceGroup {
    /// A communicator of all devices of the group, as one rank for each device, in their order.
    ///
    /// # Errors
    /// As for [`DeviceCommunicator::join`].
    #[track_caller]
    pub fn communicators(&self, config: &DeviceCommunicatorConfig) -> Result<Vec<DeviceCommunicator>> {
        if self.len() == 1 {
            return Ok(vec![DeviceCommunicator::alone(self.runtime(0)?)?]);
        }
        let id = DeviceCommunicator::new_id(self.runtime(0)?)?;
        let size = self.len() as u32;
        let ranks = (0..size).zip(self.runtimes());
        let membership = Membership::new(id, size);
        let mut joined = Vec::with_capacity(self.len());
        // No closure, in which the caller's line would not be known.
        for (rank, runtime) in ranks {
            joined.push(DeviceCommunicator::join_in(runtime, id, (rank, size), config, &membership)?);
        }
        Ok(joined)
    }
}
