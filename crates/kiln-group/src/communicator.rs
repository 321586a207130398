//! `DeviceCommunicator`: one rank of several that exchange data.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use kiln_driver::Image;
use kiln_operation::{ARGUMENT_BYTES, CollectiveGroup, CommunicatorId, CommunicatorRank, OperandEffect};
use kiln_runtime::internal::{EndedWork, end_work};
use kiln_runtime::{
    DeviceRuntime, Effect, Error, GpuRef, Kernel, Module, Number, Parameter, ParameterKind, Signature, Ticket,
};

use crate::abort::abort;
use crate::device_group::DeviceGroup;
use crate::error::{GroupError, Result};
use crate::job_ranks::Job;
use crate::ledger::Ledger;
use crate::membership::{LocalEntry, LocalRank, Membership};
use crate::rank_loss::CommunicatorRankLost;
use crate::rank_watch::watch;
use crate::remembered_call::{RememberedCall, RememberedCalls};
use crate::rendezvous::{LostRank, Rendezvous};

/// How long an abort waits for a submission that is under way.
const TURN_LIMIT: Duration = Duration::from_millis(200);

/// How a communicator behaves. All ranks should have the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCommunicatorConfig {
    /// How long a rank waits for the others, while its communicator is made and in a collective. Then every rank that waits fails, with an error
    /// that names the ranks it waited for. On a simulated device it counts in real time, while no rank does anything.
    pub deadline: Duration,
}

impl Default for DeviceCommunicatorConfig {
    /// A deadline of one minute.
    fn default() -> Self {
        Self { deadline: Duration::from_secs(60) }
    }
}

/// One rank of a communicator: a device that exchanges data with the devices of other ranks, in this process or in others. Clones are the same rank.
///
/// Each rank calls the same collectives in the same order. A collective is a launch: it is queued, ordered with everything else that uses its
/// buffers, and can be part of a graph. It is done on a rank when that rank's buffers are.
///
/// A rank is **lost** if its device is, or if its thread panics while it holds the rank. Ranks of one [group](DeviceGroup::communicators) are told of that within a second. Ranks
/// that [meet](Self::meet) in a job are told within a second of a process that ends. Their unfinished collectives end with
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
    inner: Arc<Inner>,
}

struct Inner {
    runtime: DeviceRuntime,
    rank: CommunicatorRank,
    /// Its short name as a number, for recordings.
    number: u64,
    /// What the barrier works in.
    scratch: GpuRef<u8>,
    functions: Mutex<HashMap<CollectiveGroup, Kernel>>,
    /// None for a rank that is alone.
    module: Option<Module>,
    /// Held over one submission: collectives are counted in the order in which the driver has them.
    turn: Mutex<()>,
    ledger: Arc<Mutex<Ledger>>,
    /// None for a rank that is alone.
    membership: Option<Arc<Membership>>,
    lost: OnceLock<LostRank>,
}

impl DeviceCommunicator {
    /// Makes the id of a new communicator. One rank makes it and passes it on to the others; its process must live until all of them have joined.
    ///
    /// # Errors
    /// NCCL is missing or too old; a lost device.
    pub fn new_id(runtime: &DeviceRuntime) -> Result<CommunicatorId> {
        let made = OnceLock::new();
        let failed = |source| GroupError::Rank { rank: 0, source };
        drop(runtime.load_module(&Image::CommunicatorId { id: &made }).map_err(failed)?);
        let bytes = made.get().map_or(&[][..], Vec::as_slice);
        CommunicatorId::try_from(bytes).map_err(GroupError::collective)
    }

    /// Becomes one rank of a communicator. It does not wait for the others; the first collective does.
    ///
    /// # Errors
    /// A rank that is not below the size; a rank that joined before; another size than another rank gave; NCCL is missing or too old.
    pub fn join(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        rank: u32,
        size: u32,
        config: &DeviceCommunicatorConfig,
    ) -> Result<Self> {
        Self::join_in(runtime, id, (rank, size), config, &Membership::new(id, size))
    }

    /// Becomes the rank of this process in a communicator of all ranks of a job. It waits until rank 0 has made the id. A process that is lost is a lost rank.
    ///
    /// # Errors
    /// As for [`join`](Self::join); what the rendezvous answers.
    pub fn meet(
        runtime: &DeviceRuntime,
        rendezvous: &Arc<Rendezvous>,
        config: &DeviceCommunicatorConfig,
    ) -> Result<Self> {
        const KEY: &str = "kiln/communicator";
        let failed = |error| GroupError::Rendezvous(Arc::new(error));
        let (rank, size) = (rendezvous.rank(), rendezvous.size());
        if size == 1 {
            return Self::alone(runtime);
        }
        if rank == 0 {
            rendezvous.put(KEY, Self::new_id(runtime)?.bytes()).map_err(failed)?;
        }
        let id = rendezvous.get(KEY).map_err(failed)?;
        let id = CommunicatorId::try_from(&id[..]).map_err(GroupError::collective)?;
        let job = Job { rendezvous: rendezvous.clone(), ranks: (0..size).collect() };
        let seen = rendezvous.losses_seen();
        Self::join_in(runtime, id, (rank, size), config, &Membership::of_job(id, size, job, seen))
    }

    /// Becomes one of the ranks of a communicator.
    pub(crate) fn join_in(
        runtime: &DeviceRuntime,
        id: CommunicatorId,
        (rank, size): (u32, u32),
        config: &DeviceCommunicatorConfig,
        membership: &Arc<Membership>,
    ) -> Result<Self> {
        let failed = |source| GroupError::Rank { rank, source };
        let joined = CommunicatorRank { id, rank, size, deadline: config.deadline };
        joined.check().map_err(GroupError::collective)?;
        // Before the module is loaded: a device that is rebuilt after it has lost it.
        let changes = runtime.watch().status().changes;
        let scratch = runtime.zeros::<u8>(1).map_err(failed)?;
        let load = || runtime.load_module(&Image::Communicator(&joined.to_string())).map_err(failed);
        let module = (size > 1).then(load).transpose()?;
        let membership = (size > 1).then(|| membership.clone());
        if let Some(membership) = membership.as_ref().filter(|membership| membership.begin_watch()) {
            watch(membership).map_err(|error| failed(Error::other(error)))?;
        }
        let ledger: Arc<Mutex<Ledger>> = Arc::default();
        let inner = Arc::new_cyclic(|weak: &Weak<Inner>| {
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
                functions: Mutex::default(),
                module,
                turn: Mutex::default(),
                ledger,
                membership: membership.clone(),
                lost: OnceLock::new(),
            }
        });
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
    pub fn alone(runtime: &DeviceRuntime) -> Result<Self> {
        let id = CommunicatorId::new([0; CommunicatorId::BYTES]);
        Self::join(runtime, id, 0, 1, &DeviceCommunicatorConfig::default())
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
        let ledger = self.inner.ledger();
        (ledger.done(), ledger.submitted, ledger.remembered())
    }

    /// Begins a submission, unless a rank is lost.
    pub(crate) fn begin(&self) -> Result<MutexGuard<'_, ()>> {
        let turn = self.inner.turn.lock().unwrap_or_else(PoisonError::into_inner);
        match self.inner.lost.get() {
            Some(lost) => Err(self.inner.refusal(lost)),
            None => Ok(turn),
        }
    }

    /// The error of a submission that the device refused. A rank that was lost meanwhile is the reason.
    pub(crate) fn refused(&self, source: Error) -> GroupError {
        match self.inner.lost.get() {
            Some(lost) if !source.is_lost() => self.inner.refusal(lost),
            _ => GroupError::Rank { rank: self.rank(), source },
        }
    }

    /// A collective was submitted. If a rank was lost meanwhile, it is ended like those before it.
    pub(crate) fn note(&self, ticket: &Ticket, call: Option<RememberedCall>) {
        let inner = &self.inner;
        inner.ledger().note(ticket, call);
        if let Some(lost) = inner.lost.get() {
            let told = Arc::new(inner.loss(lost));
            end_work(&inner.runtime, EndedWork::Submissions(&[ticket.stamp()]), told);
        }
    }

    /// A collective became a node of a graph.
    pub(crate) fn note_graph(&self) {
        self.inner.ledger().has_graphs = true;
    }

    pub(crate) fn scratch(&self) -> &GpuRef<u8> {
        &self.inner.scratch
    }

    /// Whether both are the same rank of the same communicator.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The kernel of a group, which is looked up once; none for a rank that is alone.
    pub(crate) fn function(&self, group: &CollectiveGroup) -> Result<Option<Kernel>> {
        let Some(module) = &self.inner.module else { return Ok(None) };
        let mut functions = self.inner.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(group) {
            return Ok(Some(known.clone()));
        }
        group.check(self.rank(), self.size()).map_err(GroupError::collective)?;
        let failed = |source| GroupError::Rank { rank: self.rank(), source };
        let signature = signature(group, self.rank(), self.size());
        let kernel = module.kernel(&group.to_string(), Some(signature)).map_err(failed)?;
        functions.insert(group.clone(), kernel.clone());
        Ok(Some(kernel))
    }
}

impl Inner {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loss(&self, lost: &LostRank) -> CommunicatorRankLost {
        CommunicatorRankLost {
            communicator: self.rank.id.short(),
            lost: lost.rank,
            cause: lost.cause.clone(),
        }
    }

    fn refusal(&self, lost: &LostRank) -> GroupError {
        GroupError::Rank { rank: self.rank.rank, source: Error::other(self.loss(lost)) }
    }
}

impl LocalRank for Inner {
    fn end(&self, lost: &LostRank) -> bool {
        if self.lost.set(lost.clone()).is_err() {
            return false;
        }
        let mut ledger = self.ledger();
        ledger.settle();
        let stamps: Vec<_> = ledger.unfinished().map(Ticket::stamp).collect();
        let ended = match ledger.has_graphs {
            true => EndedWork::AllUnfinished,
            false => EndedWork::Submissions(&stamps),
        };
        if ledger.has_graphs || !stamps.is_empty() {
            end_work(&self.runtime, ended, Arc::new(self.loss(lost)));
        }
        true
    }

    fn abort(&self) {
        // A submission under way is done first, so that it is not refused half-way; one that waits for other ranks is not waited for.
        let began = Instant::now();
        let turn = loop {
            match self.turn.try_lock() {
                Ok(turn) => break Some(turn),
                Err(TryLockError::Poisoned(turn)) => break Some(turn.into_inner()),
                Err(TryLockError::WouldBlock) if began.elapsed() < TURN_LIMIT => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(TryLockError::WouldBlock) => break None,
            }
        };
        if let Some(module) = &self.module {
            abort(&self.runtime, module);
        }
        drop(turn);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(membership) = &self.membership else { return };
        match std::thread::panicking() {
            true => {
                let loaded = self.module.take().map(|module| (self.runtime.clone(), module));
                membership.report(self.rank.rank, "its thread panicked".into(), loaded);
            }
            false => membership.leave(self.rank.rank),
        }
    }
}

impl DeviceGroup {
    /// A communicator of all devices of the group, as one rank for each device, in their order.
    ///
    /// # Errors
    /// As for [`DeviceCommunicator::join`].
    pub fn communicators(&self, config: &DeviceCommunicatorConfig) -> Result<Vec<DeviceCommunicator>> {
        if self.len() == 1 {
            return Ok(vec![DeviceCommunicator::alone(self.runtime(0)?)?]);
        }
        let id = DeviceCommunicator::new_id(self.runtime(0)?)?;
        let size = self.len() as u32;
        let ranks = (0..size).zip(self.runtimes());
        let membership = Membership::new(id, size);
        let join =
            |(rank, runtime)| DeviceCommunicator::join_in(runtime, id, (rank, size), config, &membership);
        ranks.map(join).collect()
    }
}

/// The parameters of a group, as launches are compared with them.
fn signature(group: &CollectiveGroup, rank: u32, size: u32) -> Signature {
    let operands = group.operands(rank, size).into_iter();
    let names = operands.flat_map(|operands| {
        let buffers = operands.into_iter().map(|operand| (operand.name, operand.effect));
        buffers.chain([("count", OperandEffect::Scalar)])
    });
    let parameter = |(at, (name, effect)): (u32, (&str, OperandEffect))| Parameter {
        name: Some(name.to_owned()),
        offset: at * ARGUMENT_BYTES,
        bytes: ARGUMENT_BYTES,
        kind: match effect {
            OperandEffect::Scalar => ParameterKind::Value,
            OperandEffect::Reads => ParameterKind::Pointer(Effect::Reads),
            OperandEffect::Overwrites | OperandEffect::Writes => ParameterKind::Pointer(Effect::Writes),
            OperandEffect::ReadsAndWrites => ParameterKind::Pointer(Effect::ReadsAndWrites),
        },
        number: Number::Unknown,
    };
    Signature::new((0..).zip(names).map(parameter).collect())
}

impl fmt::Debug for DeviceCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommunicatorRank { id, rank, size, .. } = self.inner.rank;
        write!(f, "rank {rank} of {size} of communicator {id:?}")
    }
}
