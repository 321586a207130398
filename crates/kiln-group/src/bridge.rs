//! Collectives between simulated devices of several processes.
//!
//! A simulated communicator lives in one process. Ranks that [meet](crate::DeviceCommunicator::meet) with simulated devices in several processes exchange what they bring through
//! the store of their job instead: a call waits for the others on the host, and what this rank receives is then written on its device, where every access is checked. Reductions are
//! computed by the device, in the order of the ranks, so that all ranks get the same bits as ranks of one process do. It is for checks of programs, and slow.

mod absence;
mod bringing;
mod brought;
mod call_text;
mod compared_calls;
mod crossing;
mod disagreement;
mod ended_part;
mod given_up;
mod place;
mod reading;
mod refused;
mod room;
mod silent_store;
mod whole_values;

use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kiln_operation::{CollectiveKind, CommunicatorId, FOLD};
use kiln_runtime::internal::{
    RecordedMoment, WorkContext, check_ready, check_stream, check_usable, recorded_moment, submit_called_at,
};
use kiln_runtime::{DeviceRuntime, Error, GpuRef, Module, Stream, Ticket};

use crate::collective_part::Part;
use crate::collective_text::called_as_group;
use crate::deadline::after;
use crate::error::{GroupError, Result};
use crate::job_ranks::Job;
use crate::rendezvous::{Rendezvous, RendezvousError};
use crate::transfer::{self, Transfer};
use absence::Absence;
use brought::{Brought, bytes_of};
use place::Place;
use refused::WholeCall;

/// Bytes of a value that the store is given at a time.
const CHUNK_BYTES: usize = 512 << 10;
const NEXT: &str = "let all ranks call the same collectives in the same order";

/// The way of one rank to the others.
pub(crate) struct Bridge {
    job: Job,
    /// Losses of the job before the communicator was made. Each one after them that is of its ranks is the end of it, also of a rank that was replaced since.
    losses_before: usize,
    id: CommunicatorId,
    /// Names the communicator among those of the job.
    name: String,
    rank: u32,
    size: u32,
    deadline: Duration,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    calls: u64,
    numbers: Numbers,
    /// Values that this rank gave for collectives of all ranks, call by call.
    given: VecDeque<Vec<String>>,
    /// Why this rank takes no more calls.
    given_up: Option<String>,
    /// It has said that it ended its part.
    has_ended: bool,
}

/// How many collectives this rank has called; of transfers, by the other rank.
#[derive(Clone, Default)]
struct Numbers {
    collectives: u64,
    sent: BTreeMap<u32, u64>,
    received: BTreeMap<u32, u64>,
}

/// Calls whose values are kept. A rank that comes to a call has all values of the one before, which the others gave after they had read those before that.
const KEPT_CALLS: usize = 3;

/// A call of the program: where it is, and which one of this rank.
#[derive(Clone, Copy)]
struct Caller {
    place: &'static Location<'static>,
    number: u64,
}

/// Whether each rank of a job is in another process than rank 0. Ranks that are threads of its process share its simulated machine, and no exchange is needed.
pub(crate) fn spans_processes(rendezvous: &Rendezvous) -> Result<bool> {
    let failed = |error| GroupError::Rendezvous(Arc::new(error));
    let processes = rendezvous.processes().map_err(failed)?;
    let Some((first, others)) = processes.split_first() else { return Ok(true) };
    Ok(others.iter().all(|other| other != first))
}

/// An id that no other process makes.
pub(crate) fn random_id() -> CommunicatorId {
    let mut bytes = [0; CommunicatorId::BYTES];
    let number = Rendezvous::random_number().to_le_bytes();
    bytes.iter_mut().zip(number).for_each(|(byte, random)| *byte = random);
    CommunicatorId::new(bytes)
}

impl Bridge {
    pub(crate) fn new(
        (job, losses_before): (&Job, usize),
        id: CommunicatorId,
        (rank, size): (u32, u32),
        deadline: Duration,
    ) -> Self {
        let name = transfer::communicator_name(&id.to_string());
        Self { job: job.clone(), losses_before, id, name, rank, size, deadline, counts: Mutex::default() }
    }

    /// Does collectives, after everything that wrote their buffers. The ticket is that of the last write, which is what a recording calls the collective: `as_recorded` says so.
    pub(crate) fn submit(
        &self,
        (runtime, module): (&DeviceRuntime, &Module),
        scratch: &GpuRef<u8>,
        (parts, stream, place): (&[Part], Option<&Stream>, &'static Location<'static>),
        as_recorded: &dyn Fn(Option<RecordedMoment>) -> WorkContext,
    ) -> Result<Ticket> {
        self.check(runtime, parts, stream)?;
        // Nothing is given to the others before all of it was read.
        let read = |part| self.read((runtime, module), part, place);
        let read = parts.iter().map(read).collect::<Result<Vec<_>>>()?;
        let came = recorded_moment(runtime);
        let as_recorded = &|| as_recorded(came);
        let mut counts = self.counts();
        self.check_given_up(&counts)?;
        let caller = Caller { place, number: counts.calls };
        counts.calls += 1;
        let mut writes = Vec::with_capacity(parts.len());
        self.exchange(&mut counts, (parts, caller), read, |part, brought| {
            writes.extend(self.received(part, &brought)?.map(|(to, bytes)| (part, to, bytes)));
            Ok(())
        })?;
        let Some((last, others)) = writes.split_last() else {
            // The ticket of a call that writes nothing is still one of work on its stream.
            let _recorded = as_recorded();
            let filled = match stream {
                Some(stream) => scratch.fill_on(stream, 0),
                None => scratch.fill(0),
            };
            return filled.map_err(|source| self.failed(source));
        };
        for write in others {
            self.write((runtime, module), write, (stream, place), None)?;
        }
        self.write((runtime, module), last, (stream, place), Some(as_recorded))
    }

    /// Brings what this rank gives to the collectives of a call, which stands for as many values, and waits for what the others bring to each.
    fn exchange<'p>(
        &self,
        counts: &mut Counts,
        (parts, caller): (&'p [Part], Caller),
        given: Vec<Vec<u8>>,
        mut met: impl FnMut(&'p Part, Vec<Brought>) -> Result<()>,
    ) -> Result<()> {
        let called = called_as_group(parts);
        let before = counts.numbers.clone();
        let places: Vec<Place> =
            parts.iter().map(|part| self.next_place(&mut counts.numbers, part)).collect();
        let call = WholeCall { parts, called: &called, places: &places, caller };
        self.begin_exchange(counts, call, &before)?;
        // All bring what they have before one waits: a send and a receive of one call may meet each other.
        for (at, bytes) in given.iter().enumerate() {
            self.bring(counts, (call, at), bytes, &before)?;
        }
        // The deadline is for ranks that do not come, and not for large values.
        let mut end = after(Instant::now(), self.deadline);
        let mut all = Vec::with_capacity(parts.len());
        for (((part, called), place), own) in parts.iter().zip(&called).zip(&places).zip(given) {
            let met = self
                .meet((part, called, caller), (place, &places, own), &mut end)
                .inspect_err(|why| self.give_up(counts, (parts, &places), why))?;
            match met {
                Ok(brought) => all.push(brought),
                Err((rank, other)) => {
                    let is_call = !other.said.is_empty();
                    if let (false, Place::Pair(transfer)) = (is_call, place) {
                        self.job.rendezvous.forget(format!("{}/", self.key(place, rank)));
                        self.check_order(*transfer, &other, caller)?;
                    }
                    let why = self.disagreement((place, part, caller), rank, (called, other));
                    // A send without room is one that both ranks have called.
                    if is_call || parts.len() > 1 {
                        self.refuse(counts, call, (before, &why));
                    }
                    return Err(why);
                }
            }
        }
        // What is received goes away in the store once all parts are known to fit.
        for ((part, place), brought) in parts.iter().zip(&places).zip(all) {
            if let (Place::Pair(transfer), Some(one)) = (place, brought.first()) {
                self.take(place, one)?;
                self.check_order(*transfer, one, caller)
                    .inspect_err(|why| self.say_given_up(counts, &[], &why.to_string()))?;
            }
            met(part, brought)?;
        }
        self.job.rendezvous.say_came(|of_job| {
            let rank = self.job.place(of_job);
            rank.is_some() && places.iter().any(|place| place.needs(self.rank, rank))
        });
        Ok(())
    }

    /// Writes what this rank receives; of several submissions, the last is recorded as one may say.
    fn write(
        &self,
        (runtime, module): (&DeviceRuntime, &Module),
        (part, to, bytes): &(&Part, GpuRef<u8>, Vec<u8>),
        (stream, place): (Option<&Stream>, &'static Location<'static>),
        as_recorded: Option<&dyn Fn() -> WorkContext>,
    ) -> Result<Ticket> {
        if part.collective.kind().reduces() && !to.is_empty() {
            let blocks = runtime.upload(bytes).map_err(|source| self.failed(source))?;
            let _recorded = as_recorded.map(|context| context());
            return self.fold((runtime, module), part, (&blocks, to), (stream, place));
        }
        let _recorded = as_recorded.map(|context| context());
        let written = match stream {
            Some(stream) => to.upload_on(stream, bytes),
            None => to.upload(bytes),
        };
        written.map_err(|source| self.failed(source))
    }

    /// Refuses what would fail after others have what this rank brings.
    fn check(&self, runtime: &DeviceRuntime, parts: &[Part], stream: Option<&Stream>) -> Result<()> {
        let failed = |source| self.failed(source);
        check_ready(runtime).map_err(failed)?;
        if let Some(stream) = stream {
            check_stream(stream, runtime).map_err(failed)?;
        }
        for part in parts {
            let operands = part.collective.operands(self.rank, self.size);
            for (buffer, operand) in part.buffers.iter().zip(operands) {
                let place = || format!("`{}` of {}", operand.name, part.collective.name());
                check_usable(buffer, runtime).map_err(|source| failed(source.placed(place())))?;
            }
            // Views of the buffers: what is too short is refused here.
            self.given(part)?;
            self.received(part, &[])?;
        }
        Ok(())
    }

    /// What ranks bring to this communicator is not read any more: it has lost a rank.
    pub(crate) fn forget(&self) {
        self.job.rendezvous.forget(format!("{}/", self.name));
    }

    /// Waits for what the others bring, by rank; for a transfer the sender's alone. The first that brings something else is not an error yet.
    fn meet(
        &self,
        (part, own, caller): (&Part, &str, Caller),
        (place, places, mut own_bytes): (&Place, &[Place], Vec<u8>),
        end: &mut Instant,
    ) -> Result<std::result::Result<Vec<Brought>, (u32, Brought)>> {
        let ranks: Vec<u32> = match place {
            Place::All(_) => (0..self.size).collect(),
            Place::Pair(Transfer { to, .. }) if *to != self.rank => return Ok(Ok(Vec::new())),
            Place::Pair(Transfer { from, .. }) => vec![*from],
        };
        let mut all = Vec::with_capacity(ranks.len());
        for rank in ranks {
            if matches!(place, Place::All(_)) && rank == self.rank {
                let (called, said) = (own.to_owned(), String::new());
                let bytes = std::mem::take(&mut own_bytes);
                all.push(Brought { called, said, bytes, call: caller.number, pieces: 0 });
                continue;
            }
            let brought = self.brought((place, places), rank, (part, caller, end))?;
            if own != brought.called {
                return Ok(Err((rank, brought)));
            }
            all.push(brought);
        }
        Ok(Ok(all))
    }

    fn brought(
        &self,
        (place, places): (&Place, &[Place]),
        rank: u32,
        (part, caller, end): (&Part, Caller, &mut Instant),
    ) -> Result<Brought> {
        let key = self.key(place, rank);
        let absent = |gone: (u32, Absence)| self.absent(place, gone, (part, caller));
        let (mut message, mut at, mut chunks) = (Vec::new(), 0, 1);
        let (mut came, mut until, mut is_decided) = (None, *end, false);
        while at < chunks {
            let found = match self.piece(place, rank, (&format!("{key}/{at}"), until))? {
                Err((_, Absence::Late)) if !is_decided && self.decide(places, (place, rank), part)? => {
                    // All have come: what is missing is on its way.
                    (is_decided, until) = (true, after(Instant::now(), self.deadline));
                    continue;
                }
                found => found.map_err(absent)?,
            };
            let Some((head, chunk)) = found.split_first_chunk::<8>() else {
                return Err(absent((rank, Absence::Late)));
            };
            let head = u64::from_le_bytes(*head);
            if at > 0 && head != chunks {
                message.clear();
            }
            // The first piece says what the rank calls, and that is all that some ranks read.
            chunks = if self.is_read(part, rank) { head } else { 1 };
            if at == 0 {
                let whole = chunks.saturating_mul(CHUNK_BYTES as u64);
                self.reserve(&mut message, usize::try_from(whole).unwrap_or(usize::MAX))?;
            }
            message.extend(chunk);
            at += 1;
            let now = Instant::now();
            came.get_or_insert(now);
            until = after(now, self.deadline);
        }
        *end = after(*end, came.map_or(Duration::ZERO, |came| came.elapsed()));
        let brought = transfer::Brought::unpacked(&message).ok_or_else(|| absent((rank, Absence::Late)))?;
        let (called, said, call) = (brought.called.to_owned(), brought.said.to_owned(), brought.call);
        let head = message.len() - brought.bytes.len();
        message.drain(..head);
        Ok(Brought { called, said, bytes: message, call, pieces: at })
    }

    /// Whether this rank needs the bytes that another one brings.
    fn is_read(&self, part: &Part, rank: u32) -> bool {
        use CollectiveKind::*;
        let root = part.collective.root_rank();
        match part.collective.kind() {
            Reduce | Gather => root == Some(self.rank),
            Broadcast | Scatter => root == Some(rank),
            Barrier => false,
            AllReduce | AllGather | ReduceScatter | AllToAll | Send | Recv => true,
        }
    }

    /// What this rank brings, in its first buffer.
    fn given(&self, part: &Part) -> Result<Option<GpuRef<u8>>> {
        use CollectiveKind::*;
        let (collective, block) = (&part.collective, self.block(part));
        let (is_root, rank, size) = (collective.root_rank() == Some(self.rank), self.rank, self.size);
        let blocks = match collective.kind() {
            AllReduce | Reduce | Send => 0..1,
            AllGather if collective.is_in_place() => rank..rank + 1,
            Gather if collective.is_in_place() && is_root => rank..rank + 1,
            AllGather | Gather => 0..1,
            ReduceScatter | AllToAll => 0..size,
            Scatter if is_root => 0..size,
            Broadcast if is_root => 0..1,
            Broadcast | Scatter | Recv | Barrier => return Ok(None),
        };
        let Some(first) = part.buffers.iter().next() else { return Ok(None) };
        first.view(bytes_of(blocks, block)).map(Some).map_err(|source| self.failed(source))
    }

    /// Where this rank receives something, and that; for a reduction the blocks of all ranks.
    fn received(&self, part: &Part, brought: &[Brought]) -> Result<Option<(GpuRef<u8>, Vec<u8>)>> {
        use CollectiveKind::*;
        let (collective, block) = (&part.collective, self.block(part));
        let (is_root, rank, size) = (collective.root_rank() == Some(self.rank), self.rank, self.size);
        let all = |at: u32| self.joined(&brought.iter().map(|one| one.block(at, block)).collect::<Vec<_>>());
        let of = |one: Option<&Brought>, at: u32| {
            one.map_or_else(|| Ok(Vec::new()), |one| self.joined(&[one.block(at, block)]))
        };
        let root = collective.root_rank().and_then(|root| brought.get(root as usize));
        let (blocks, bytes) = match collective.kind() {
            Send | Barrier => return Ok(None),
            Reduce | Gather if !is_root => return Ok(None),
            Broadcast if is_root => return Ok(None),
            Scatter if is_root && collective.is_in_place() => return Ok(None),
            AllReduce | Reduce => (0..1, all(0)?),
            ReduceScatter if collective.is_in_place() => (rank..rank + 1, all(rank)?),
            ReduceScatter => (0..1, all(rank)?),
            AllGather | Gather => (0..size, all(0)?),
            AllToAll => (0..size, all(rank)?),
            Recv => (0..1, of(brought.first(), 0)?),
            Broadcast => (0..1, of(root, 0)?),
            Scatter => (0..1, of(root, rank)?),
        };
        let Some(last) = part.buffers.iter().last() else { return Ok(None) };
        let to = last.view(bytes_of(blocks, block)).map_err(|source| self.failed(source))?;
        Ok(Some((to, bytes)))
    }

    /// Has the device reduce the blocks of all ranks.
    fn fold(
        &self,
        (runtime, module): (&DeviceRuntime, &Module),
        part: &Part,
        (blocks, to): (&GpuRef<u8>, &GpuRef<u8>),
        (stream, place): (Option<&Stream>, &'static Location<'static>),
    ) -> Result<Ticket> {
        let failed = |source| self.failed(source);
        let kernel = module.kernel(&format!("{FOLD}{}", part.collective), None).map_err(failed)?;
        let mut launch = runtime.launch(&kernel);
        if let Some(stream) = stream {
            launch.on(stream);
        }
        launch.grid(1).block(1).read(blocks).write(to).value(part.count);
        // SAFETY: it reads as many blocks as there are ranks, writes one, and ends.
        unsafe { submit_called_at(&mut launch, place) }.map_err(failed)
    }

    fn key(&self, place: &Place, rank: u32) -> String {
        match place {
            Place::All(number) => format!("{}{number}/{rank}", transfer::collective_keys(&self.name)),
            Place::Pair(transfer) => transfer.key(&self.name),
        }
    }

    fn block(&self, part: &Part) -> usize {
        (part.count * part.collective.element().bytes()) as usize
    }

    fn failed(&self, source: Error) -> GroupError {
        GroupError::Rank { rank: self.rank, source }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rendezvous(error: RendezvousError) -> GroupError {
    GroupError::Rendezvous(Arc::new(error))
}
