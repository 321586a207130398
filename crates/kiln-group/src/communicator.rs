//! `DeviceCommunicator`: one rank of several that exchange data.

mod compared_rank;
mod held_rank;
mod local_rank;
mod logged_call;

use std::fmt;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::{DeviceKind, Image, Refusal};
use kiln_operation::{CommunicatorId, CommunicatorRank, FAILURE};
use kiln_runtime::internal::{EndedWork, end_work};
use kiln_runtime::{DeviceRuntime, Error, GpuRef, Module, Ticket};

use crate::abort::{ReadyAbort, load};
use crate::alone_id::claim_alone;
use crate::bridge::{Bridge, random_id};
use crate::call_log::CallLog;
use crate::collective_part::Part;
use crate::communicator_config::DeviceCommunicatorConfig;
use crate::communicator_failure::CommunicatorFailed;
use crate::deadline::after;
use crate::ended_communicator::EndedCommunicator;
use crate::error::{GroupError, Result};
use crate::known_functions::KnownFunctions;
use crate::late_ranks::late_ranks;
use crate::ledger::Ledger;
use crate::lost_device::lost_device;
use crate::membership::{LocalEntry, LocalRank, Membership};
use crate::rank_loss::{CommunicatorRankLost, given_up_cause};
use crate::rank_watch::watch;
use crate::remembered_call::{RememberedCall, RememberedCalls};
use crate::rendezvous::LostRank;
use held_rank::HeldRank;

/// How long a rank sleeps before it asks again whether the others have joined.
const JOIN_POLL: Duration = Duration::from_millis(1);
/// How long a failure of the library is held back for the rank whose loss may be behind it.
const LOSS_PATIENCE: Duration = Duration::from_secs(2);

/// One rank of a communicator: a device that exchanges data with the devices of other ranks, in this process or in others. Clones are the same rank.
///
/// Each rank calls the same collectives in the same order. A collective is a launch: it is queued, ordered with everything else that uses its
/// buffers, and can be part of a graph. It is done on a rank when that rank's buffers are.
///
/// A rank is **lost** if its device is, or if its thread panics while it holds the last handle of the rank: a clone elsewhere keeps it. Ranks of one [group](crate::DeviceGroup::communicators) are told of that within a second. Ranks
/// that [meet](Self::meet) in a job are told of it within a second as well, and of a process that ends. The rank is lost for the whole job then, also while its process lives: that may drop its [`Rendezvous`](crate::Rendezvous) and
/// join again as a replacement. Their unfinished collectives end with
/// [`CommunicatorRankLost`](crate::CommunicatorRankLost), and so does unfinished work behind them. What that was to write cannot be read until it is overwritten
/// whole; all other buffers are as they were. [`rebuild`](Self::rebuild) makes a communicator of the ranks that are left, and
/// [`rebuild_replaced`](Self::rebuild_replaced) one with replacements of the lost ranks.
///
/// ```
/// use kiln::group::{DeviceGroup, Reduction};
/// use kiln::sim::{DeviceConfig, Machine, MachineConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = MachineConfig::seeded(1).device(DeviceConfig::default()).device(DeviceConfig::default());
/// let machine = Machine::new(config);
/// let group = DeviceGroup::over([machine.device(0)?, machine.device(1)?], &Default::default())?;
/// let ranks = group.communicators(&Default::default())?;
///
/// let one = group.runtime(0)?.upload(&[1.0_f32, 2.0])?;
/// let other = group.runtime(1)?.upload(&[10.0_f32, 20.0])?;
/// ranks[0].all_reduce_in_place(&one, Reduction::Sum).submit()?; // does not wait
/// ranks[1].all_reduce_in_place(&other, Reduction::Sum).submit()?;
/// assert_eq!(one.download()?, [11.0, 22.0]);
/// assert_eq!(other.download()?, [11.0, 22.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DeviceCommunicator {
    inner: Arc<HeldRank>,
}

struct Inner {
    rank: CommunicatorRank,
    /// Its short name as a number, for recordings.
    number: u64,
    /// What the barrier works in.
    scratch: GpuRef<u8>,
    /// None for a rank that is alone, unless its device is a simulated one and was given an id.
    module: Option<Module>,
    /// What ends it, where that must be there before it is needed.
    ready_abort: Option<ReadyAbort>,
    /// How it reaches simulated devices of other processes.
    bridge: Option<Bridge>,
    /// How what it calls is compared with what the others call, if it is.
    compared: OnceLock<Bridge>,
    /// What the ranks of a simulated machine have called.
    log: Option<Arc<CallLog>>,
    /// Whether the other ranks have joined, or cannot.
    is_joined: AtomicBool,
    /// Held over one submission: collectives are counted in the order in which the driver has them.
    turn: Mutex<KnownFunctions>,
    ledger: Arc<Mutex<Ledger>>,
    /// None for a rank that is alone.
    membership: Option<Arc<Membership>>,
    lost: OnceLock<LostRank>,
    /// Why it takes no more calls, where its device does not say that itself.
    failed: OnceLock<EndedCommunicator>,
    /// Dropped after its buffers.
    runtime: DeviceRuntime,
}

impl DeviceCommunicator {
    /// Makes the id of a new communicator. One rank makes it and passes it on to the others; its process must live until all of them have joined.
    ///
    /// # Errors
    /// NCCL is missing or too old; a lost device.
    pub fn new_id(runtime: &DeviceRuntime) -> Result<CommunicatorId> {
        Self::id_of(runtime, 0)
    }

    /// Makes an id, for a rank that has its number.
    fn id_of(runtime: &DeviceRuntime, rank: u32) -> Result<CommunicatorId> {
        let made = OnceLock::new();
        let failed = |source| GroupError::Rank { rank, source };
        drop(runtime.load_module(&Image::CommunicatorId { id: &made }).map_err(failed)?);
        let bytes = made.get().map_or(&[][..], Vec::as_slice);
        CommunicatorId::try_from(bytes).map_err(GroupError::collective)
    }

    /// Becomes one rank of a communicator. It does not wait for the others; the first collective does.
    ///
    /// # Errors
    /// A rank that is not below the size; a rank that joined before; another size than another rank gave; an id that was used before or that no rank made; NCCL is missing or too old.
    #[track_caller]
    pub fn join(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        rank: u32,
        size: u32,
        config: &DeviceCommunicatorConfig,
    ) -> Result<Self> {
        let claim = if size == 1 { claim_alone(runtime, id, rank, config)? } else { None };
        Self::join_with(runtime, id, (rank, size), config, (&Membership::new(id, size), claim))
    }

    /// The id of a new communicator of some of these ranks.
    pub(crate) fn next_id(&self) -> Result<CommunicatorId> {
        match &self.inner.bridge {
            Some(_) => Ok(random_id()),
            None => Self::id_of(self.runtime(), self.rank()),
        }
    }

    /// Becomes one of the ranks of a communicator.
    #[track_caller]
    pub(crate) fn join_in(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        (rank, size): (u32, u32),
        config: &DeviceCommunicatorConfig,
        membership: &Arc<Membership>,
    ) -> Result<Self> {
        Self::join_with(runtime, id, (rank, size), config, (membership, None))
    }

    /// The same, for a rank that is alone with what keeps its id from being used again.
    #[track_caller]
    fn join_with(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        (rank, size): (u32, u32),
        config: &DeviceCommunicatorConfig,
        (membership, claim): (&Arc<Membership>, Option<Module>),
    ) -> Result<Self> {
        let failed = |source| GroupError::Rank { rank, source };
        let joined = CommunicatorRank { id, rank, size, deadline: config.deadline };
        joined.check().map_err(GroupError::collective)?;
        // Before the module is loaded: a device that is rebuilt after it has lost it.
        let changes = runtime.watch().status().changes;
        let scratch = runtime.zeros::<u8>(1).map_err(failed)?;
        let bridge = membership.job.as_ref().filter(|_| membership.is_bridged && size > 1);
        let bridge =
            bridge.map(|job| Bridge::new((job, membership.losses_before), id, (rank, size), config.deadline));
        // The device of this process knows this rank alone, by another id.
        let loaded = match bridge {
            Some(_) => CommunicatorRank { id: Self::id_of(runtime, rank)?, ..joined },
            None => joined,
        };
        let (module, ready) = if size > 1 { load(runtime, &loaded).map_err(failed)? } else { (claim, None) };
        let membership = (size > 1).then(|| membership.clone());
        let ledger = Arc::new(Mutex::new(Ledger::new(runtime.info().kind)));
        let is_logged = size > 1 && bridge.is_none() && runtime.info().kind != DeviceKind::Cuda;
        let log = is_logged.then(|| CallLog::of(id));
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
            log.iter().for_each(|log| log.enter(rank, weak.clone()));
            if let Some(membership) = &membership {
                let entry = LocalEntry {
                    rank: weak.clone(),
                    state: runtime.watch(),
                    changes,
                    driver: runtime.driver().clone(),
                    ledger: Arc::clone(&ledger),
                };
                membership.enter(rank, entry);
            }
            Inner {
                runtime: runtime.clone(),
                rank: joined,
                number: u64::from_str_radix(&id.short(), 16).unwrap_or_default(),
                scratch,
                module,
                ready_abort: ready,
                log: log.clone(),
                bridge,
                compared: OnceLock::new(),
                is_joined: AtomicBool::new(size == 1 || runtime.info().kind != DeviceKind::Cuda),
                turn: Mutex::default(),
                ledger,
                membership: membership.clone(),
                lost: OnceLock::new(),
                failed: OnceLock::new(),
            }
        });
        let inner = Arc::new(HeldRank::new(inner));
        if let Some(membership) = &inner.membership {
            watch(membership).map_err(|error| GroupError::NoThread { rank, source: Arc::new(error) })?;
        }
        // A rank that comes after the first loss is told like the others.
        if let Some(lost) =
            inner.membership.as_ref().and_then(|membership| membership.lost().into_iter().next())
            && inner.end(&lost)
        {
            inner.abort();
        }
        Ok(Self { inner })
    }

    /// A communicator of this device alone. Its collectives are copies, and it needs no NCCL.
    ///
    /// # Errors
    /// A lost device, or one without memory.
    #[track_caller]
    pub fn alone(runtime: &DeviceRuntime) -> Result<Self> {
        let id = CommunicatorId::new([0; CommunicatorId::BYTES]);
        let config = DeviceCommunicatorConfig::default();
        Self::join_in(runtime, id, (0, 1), &config, &Membership::new(id, 1))
    }

    /// This rank, counted from 0.
    pub fn rank(&self) -> u32 {
        self.inner.rank.rank
    }

    /// The number of ranks.
    pub fn size(&self) -> u32 {
        self.inner.rank.size
    }

    /// The id that all ranks of it have.
    pub fn id(&self) -> CommunicatorId {
        self.inner.rank.id
    }

    /// What recordings call it.
    pub(crate) fn number(&self) -> u64 {
        self.inner.number
    }

    /// The device of this rank.
    pub fn runtime(&self) -> &DeviceRuntime {
        &self.inner.runtime
    }

    pub(crate) fn config(&self) -> DeviceCommunicatorConfig {
        DeviceCommunicatorConfig { deadline: self.inner.rank.deadline }
    }

    pub(crate) fn membership(&self) -> Option<&Arc<Membership>> {
        self.inner.membership.as_ref()
    }

    pub(crate) fn first_lost(&self) -> Option<&LostRank> {
        self.inner.lost.get()
    }

    /// Collectives that are known to be done, those that were submitted, and those that may be done again.
    pub(crate) fn counts(&self) -> (u64, u64, RememberedCalls) {
        let mut ledger = self.inner.ledger();
        // Tickets may have been told to be done after the others were ended.
        ledger.settle();
        (ledger.done(), ledger.submitted, ledger.remembered())
    }

    /// Begins a submission, unless a rank is lost.
    pub(crate) fn begin(&self) -> Result<MutexGuard<'_, KnownFunctions>> {
        let turn = self.turn();
        match (self.inner.lost.get(), self.inner.failed.get()) {
            (Some(lost), _) => Err(self.inner.refusal(lost)),
            (None, Some(failed)) => Err(GroupError::Rank { rank: self.rank(), source: failed.error() }),
            (None, None) => Ok(turn),
        }
    }

    pub(crate) fn turn(&self) -> MutexGuard<'_, KnownFunctions> {
        self.inner.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all ranks have joined, before the first collective. It asks the device again and again, so that a device in a worker process, which takes one
    /// request at a time, can be told to end the rank meanwhile.
    ///
    /// # Errors
    /// A rank was lost meanwhile. All else is told by the collective.
    #[inline]
    pub(crate) fn await_ranks(&self) -> Result<()> {
        match self.inner.is_joined.load(Ordering::Relaxed) {
            true => Ok(()),
            false => self.inner.await_ranks(),
        }
    }

    /// The error of a submission that the device refused. A rank that was lost meanwhile is the reason.
    #[cold]
    pub(crate) fn refused(&self, source: Error) -> GroupError {
        let inner = &self.inner;
        let refusal = source.driver().and_then(kiln_driver::Error::refusal);
        let is_of_library = matches!(refusal, Some(Refusal::Library { .. }));
        // NCCL may see that a connection is gone before the job knows that a rank is.
        if is_of_library && inner.membership.as_ref().is_some_and(|membership| membership.job.is_some()) {
            inner.await_loss(|| inner.membership.iter().for_each(|membership| membership.find_lost()));
        }
        match inner.lost.get() {
            Some(lost) if !source.is_lost() => inner.refusal(lost),
            _ => {
                // A call that was under way when another rank failed it.
                if let Some(failed) = inner.failed.get().filter(|_| !source.is_lost()) {
                    return GroupError::Rank { rank: self.rank(), source: failed.error() };
                }
                if is_of_library {
                    inner.fail(&source.to_string());
                }
                GroupError::Rank { rank: self.rank(), source }
            }
        }
    }

    /// The error of a call that could not reach the other ranks. A rank that is lost is the reason, where that is known.
    #[cold]
    pub(crate) fn told(&self, error: GroupError) -> GroupError {
        if matches!(&error, GroupError::Rendezvous(_)) {
            // The others give up a rank whose device is lost, and are not the reason then.
            if let Some(source) = lost_device(self.runtime()) {
                return GroupError::Rank { rank: self.rank(), source };
            }
            self.inner.await_loss(|| {});
            if let Some(lost) = self.inner.lost.get() {
                return self.inner.refusal(lost);
            }
        }
        error
    }

    /// A collective was submitted. If a rank was lost meanwhile, it is ended like those before it.
    pub(crate) fn note(
        &self,
        ticket: &Ticket,
        remembered: Option<RememberedCall>,
        called: (&[Part], &'static Location<'static>),
    ) {
        let inner = &self.inner;
        inner.ledger().note(ticket, remembered, called);
        if let Some(lost) = inner.lost.get() {
            let told = Arc::new(inner.loss(lost));
            end_work(&inner.runtime, EndedWork::Late(ticket.stamp()), told);
        } else if let Some(failed) = inner.failed.get() {
            end_work(&inner.runtime, EndedWork::Late(ticket.stamp()), failed.told());
        }
    }

    /// A collective became a node of a graph.
    pub(crate) fn note_graph(&self) {
        self.inner.ledger().has_graphs = true;
        self.inner.log.iter().for_each(|log| log.note_graph());
    }

    pub(crate) fn scratch(&self) -> &GpuRef<u8> {
        &self.inner.scratch
    }

    /// Whether both are the same rank of the same communicator.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The way to simulated devices of other processes, and what it needs.
    pub(crate) fn bridge(&self) -> Option<(&Bridge, &Module)> {
        Some((self.inner.bridge.as_ref()?, self.inner.module.as_ref()?))
    }

    pub(crate) fn module(&self) -> Option<&Module> {
        self.inner.module.as_ref()
    }
}

impl Inner {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loss(&self, lost: &LostRank) -> CommunicatorRankLost {
        let job = self.membership.as_ref().and_then(|membership| membership.job.as_ref());
        let communicator = self.rank.id.short();
        // A rank that the others gave up says that, whatever it was told before.
        if let Some(why) = job.and_then(|job| job.rendezvous.given_up()) {
            let of_job = job.map_or(self.rank.rank, |job| job.rendezvous.rank());
            return CommunicatorRankLost::own(communicator, self.rank.rank, given_up_cause(of_job, &why));
        }
        let can_rebuild = !job.is_some_and(|job| job.needs(lost));
        let late = job.map(|job| job.late_before(lost.rank)).filter(|late| !late.is_empty());
        let late = late.unwrap_or_else(|| late_ranks(&lost.cause, lost.rank, &communicator));
        let can_replace = can_rebuild && !job.is_some_and(|job| job.is_first(lost.rank));
        let (lost, cause) = (lost.rank, lost.cause.clone());
        CommunicatorRankLost { communicator, lost, cause, late, can_rebuild, can_replace }
    }

    /// Waits a while until a rank is known to be lost.
    fn await_loss(&self, look: impl Fn()) {
        let end = Instant::now() + LOSS_PATIENCE;
        while self.lost.get().is_none() && Instant::now() < end {
            look();
            std::thread::sleep(JOIN_POLL);
        }
    }

    fn refusal(&self, lost: &LostRank) -> GroupError {
        GroupError::Rank { rank: self.rank.rank, source: Error::other(self.loss(lost)) }
    }

    #[cold]
    fn await_ranks(&self) -> Result<()> {
        let end = after(Instant::now(), self.rank.deadline);
        while self.lookup().is_some_and(|error| error.is_unsupported()) && Instant::now() < end {
            if let Some(lost) = self.lost.get() {
                return Err(self.refusal(lost));
            }
            std::thread::sleep(JOIN_POLL);
        }
        self.is_joined.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// What the device answers of its communicator.
    fn lookup(&self) -> Option<kiln_driver::Error> {
        self.runtime.driver().global(self.module.as_ref()?.id(), FAILURE).err()
    }

    /// Ends what is unfinished, with the reason why the communicator failed, and has the device end it.
    fn fail(&self, why: &str) {
        let (communicator, cause) = (self.rank.id.short(), why.to_owned());
        let suspects = self.membership.as_ref().map(|members| members.suspects(self.rank.rank, why));
        let suspects = suspects.unwrap_or_default();
        let told = CommunicatorFailed { communicator, cause, suspects };
        // Held until all is said, so that a call that is submitted meanwhile is ended as well.
        let mut ledger = self.ledger();
        if self.log.is_some() {
            let _ = self.failed.set(EndedCommunicator::Failed(told.clone()));
        }
        let is_ended = self.end_unfinished(&mut ledger, Arc::new(told));
        drop(ledger);
        if is_ended || self.log.is_some() {
            self.abort();
        }
    }

    /// Says of unfinished collectives that they are ended. False if there are none.
    fn end_unfinished(&self, ledger: &mut Ledger, told: Arc<dyn std::error::Error + Send + Sync>) -> bool {
        ledger.settle();
        let stamps: Vec<_> = ledger.unfinished().map(Ticket::stamp).collect();
        let ended = match ledger.has_graphs {
            true => EndedWork::AllUnfinished,
            false => EndedWork::Submissions(&stamps),
        };
        let is_some = ledger.has_graphs || !stamps.is_empty();
        if is_some {
            end_work(&self.runtime, ended, told);
        }
        is_some
    }
}

impl fmt::Debug for DeviceCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommunicatorRank { id, rank, size, .. } = self.inner.rank;
        write!(f, "rank {rank} of {size} of communicator {id:?}")
    }
}
