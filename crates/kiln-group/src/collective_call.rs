//! One call of collectives: checked, then queued or recorded.

use std::panic::Location;

use kiln_driver::CallingLine;
use kiln_operation::{CollectiveKind, CollectiveStep, OperandEffect};
use kiln_runtime::internal::{
    CollectiveLabel, RecordedMoment, as_collective, called_from, is_same_runtime, mark_earlier_work,
};
use kiln_runtime::{GraphBuilder, Launch, NodeId, Stream, Ticket};

use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
use crate::few::Few;
use crate::known_functions::KnownFunction;
use crate::one_rank;
use crate::remembered_call::RememberedCall;

/// One collective, or several that run as one.
///
/// Nothing has happened yet: [`submit`](Self::submit) queues it, [`record`](Self::record) makes it a node of a graph. Both answer what is wrong with it,
/// and have changed nothing then.
#[derive(Debug)]
#[must_use = "nothing is exchanged until `submit` or `record`"]
pub struct CollectiveCall<'a> {
    communicator: &'a DeviceCommunicator,
    parts: Result<Few<Part>>,
    stream: Option<&'a Stream>,
}

impl<'a> CollectiveCall<'a> {
    pub(crate) fn new(communicator: &'a DeviceCommunicator, part: Result<Part>) -> Self {
        Self { communicator, parts: part.map(Few::One), stream: None }
    }

    /// The same as a step of another call, which is named where ranks call different ones.
    pub(crate) fn step_of(mut self, step: CollectiveStep) -> Self {
        if let Ok(Few::One(part)) = &mut self.parts {
            part.collective = part.collective.step_of(step);
        }
        self
    }

    /// The stream to run on. Otherwise it is the home of the first buffer that is written.
    pub fn on(self, stream: &'a Stream) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// This call and another one of the same rank as one launch. None of them waits for another of them, so that two ranks can send to each other;
    /// small collectives cost less together.
    pub fn and(self, other: Self) -> Self {
        let parts = match (self.parts, other.parts) {
            (Ok(_), Ok(_)) if !self.communicator.is(other.communicator) => Err(GroupError::Collective {
                what: "a group of calls of two communicators".into(),
                next: "put calls of one communicator into a group",
            }),
            (Ok(parts), Ok(others)) => Ok(parts.and(others)),
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        Self { parts, stream: self.stream.or(other.stream), ..self }
    }

    /// Queues the call, after everything that it has to come after. It does not wait for the other ranks.
    ///
    /// # Errors
    /// Lengths that do not fit; buffers that share memory, of which one is written; another rank that called something else, with both calls and their lines; a rank that is
    /// lost; on a GPU a communicator that ended because a collective was [overdue](crate::CollectiveOverdue). Nothing is queued then. Sends of simulated ranks that wait for each other ([`GroupError::CrossingSends`]).
    ///
    /// A rank of several processes with simulated devices waits for the others here. A rank may be lost when it has come to a collective and not all others have: another rank to which `Rendezvous::wait_for_loss`
    /// or an error has told of that does no collective with it any more, while one that does not know of it yet may still be given what the lost rank brought. So a collective may be done on some ranks and not on
    /// others, and [`RebuiltCommunicator`](crate::RebuiltCommunicator) says which are done on all.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        let (communicator, stream) = (self.communicator, self.stream);
        let caller = Location::caller();
        let _context = called_from(communicator.runtime(), caller);
        let _line = CallingLine::enter(caller);
        let parts = self.checked()?;
        let parts = parts.as_slice();
        if communicator.size() == 1 {
            return one_rank::submit(communicator, parts, stream);
        }
        if let Some((bridge, module)) = communicator.bridge() {
            // What a lost rank had brought is still there: a caller that knows of the loss is not given it.
            communicator.look();
            let turn = communicator.begin()?;
            let device = (communicator.runtime(), module);
            let as_recorded = |came: Option<RecordedMoment>| {
                let label = || CollectiveLabel { came, ..labelled(communicator, parts) };
                as_collective(communicator.runtime(), label)
            };
            let submitted =
                bridge.submit(device, communicator.scratch(), (parts, stream, caller), &as_recorded);
            let ticket = submitted.map_err(|error| communicator.told(error))?;
            communicator.note(&ticket, None, (parts, caller));
            drop(turn);
            return Ok(ticket);
        }
        communicator.await_ranks()?;
        let mut turn = communicator.begin()?;
        let place = (communicator.rank(), communicator.size());
        communicator.compare(parts, caller)?;
        let function = turn.get(place, communicator.module(), parts)?;
        let mut launch = communicator.runtime().launch(&function.kernel);
        if let Some(stream) = stream {
            launch.on(stream);
        }
        describe(&mut launch, function, parts);
        let _collective = as_collective(communicator.runtime(), || labelled(communicator, parts));
        // The collective waits for other ranks, and they may wait for what this rank does once earlier work is done.
        mark_earlier_work(&launch);
        // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the collective ends: when all ranks
        // have called it, or by the deadline of the communicator.
        match unsafe { launch.submit() } {
            Ok(ticket) => {
                communicator.note(&ticket, RememberedCall::new(parts), (parts, caller));
                let crossing = communicator.log(parts, caller);
                drop(turn);
                crossing.map_or(Ok(ticket), |error| Err(communicator.tell_crossing(error)))
            }
            Err(source) => {
                drop(turn);
                Err(communicator.refused_call(source, (parts, caller)))
            }
        }
    }

    /// Makes the call a node of a graph. Every rank makes it one, and replays its graph as often as the others.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); a graph of another runtime. The graph is unchanged. What other ranks call is compared at each replay.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let communicator = self.communicator;
        let parts = self.checked()?;
        let parts = parts.as_slice();
        if !is_same_runtime(graph.runtime(), communicator.runtime()) {
            return Err(GroupError::Collective {
                what: format!("rank {}: the graph belongs to another runtime", communicator.rank()),
                next: "begin it with `communicator.runtime().graph()`",
            });
        }
        if communicator.size() == 1 {
            return one_rank::record(communicator, parts, graph);
        }
        if communicator.bridge().is_some() {
            return Err(GroupError::Collective {
                what: "a collective of simulated devices in several processes in a graph".into(),
                next: "submit it, or make the ranks threads over the devices of one simulated machine",
            });
        }
        let mut turn = communicator.begin()?;
        let place = (communicator.rank(), communicator.size());
        let function = turn.get(place, communicator.module(), parts)?;
        communicator.note_graph();
        let mut launch = graph.launch(&function.kernel);
        describe(&mut launch, function, parts);
        // SAFETY: as for `submit`, at each replay.
        unsafe { launch.record() }.map_err(|source| GroupError::Rank { rank: communicator.rank(), source })
    }

    /// What it does and the bytes of its larger buffer, for each collective of it; none for a call that is refused.
    pub(crate) fn described(&self) -> Vec<(CollectiveKind, u64)> {
        let size = self.communicator.size();
        let one = |part: &Part| (part.collective.kind(), larger_bytes(part, size));
        self.parts.iter().flat_map(Few::as_slice).map(one).collect()
    }

    fn checked(self) -> Result<Few<Part>> {
        let (parts, rank, size) = (self.parts?, self.communicator.rank(), self.communicator.size());
        for part in parts.as_slice() {
            part.collective.check(rank, size).map_err(GroupError::collective)?;
        }
        let are_apart = match parts.as_slice() {
            [part] => match part.buffers.both() {
                (Some(first), Some(second)) => !first.overlaps(second),
                _ => true,
            },
            _ => false,
        };
        if !are_apart {
            check_apart(parts.as_slice(), rank, size)?;
        }
        Ok(parts)
    }
}

/// Bytes of the larger buffer of a collective.
fn larger_bytes(part: &Part, size: u32) -> u64 {
    let blocks = match part.collective.kind() {
        CollectiveKind::AllGather
        | CollectiveKind::ReduceScatter
        | CollectiveKind::AllToAll
        | CollectiveKind::Gather
        | CollectiveKind::Scatter => u64::from(size),
        CollectiveKind::Barrier => 0,
        _ => 1,
    };
    part.count.saturating_mul(part.collective.element().bytes()).saturating_mul(blocks)
}

/// What a recording says about a call.
fn labelled(communicator: &DeviceCommunicator, parts: &[Part]) -> CollectiveLabel {
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let name = match parts {
        [first, others @ ..]
            if others.iter().all(|part| part.collective.name() == first.collective.name()) =>
        {
            first.collective.name()
        }
        _ => "collectives",
    };
    let bytes = parts.iter().fold(0, |sum: u64, part| sum.saturating_add(larger_bytes(part, ranks)));
    CollectiveLabel { name, communicator: communicator.number(), rank, ranks, bytes, came: None }
}

/// Refuses buffers that share memory, of which one is written.
#[cold]
fn check_apart(parts: &[Part], rank: u32, size: u32) -> Result<()> {
    let operands: Vec<_> = parts.iter().map(|part| part.collective.operands(rank, size)).collect();
    let each = || {
        let all = parts.iter().zip(&operands).enumerate();
        all.flat_map(|(call, (part, operands))| {
            part.buffers.iter().zip(operands).map(move |pair| (call, part, pair))
        })
    };
    for (at, (call, part, (buffer, operand))) in each().enumerate() {
        for (other_call, other_part, (other, other_operand)) in each().skip(at + 1) {
            let is_written = operand.effect.changes() || other_operand.effect.changes();
            if is_written && buffer.overlaps(other) {
                let (one, two) = (operand.name, other_operand.name);
                let (what, next) = match call == other_call {
                    true => (
                        format!("`{one}` and `{two}` share memory, and one is written"),
                        "use buffers or views that do not overlap, or the collective in place",
                    ),
                    false => (
                        format!(
                            "`{one}` of {} and `{two}` of {}, calls {call} and {other_call} of the group, share memory, and one is written",
                            part.collective.name(),
                            other_part.collective.name()
                        ),
                        "use buffers or views that do not overlap, or submit the calls one after the other",
                    ),
                };
                return Err(GroupError::Collective { what, next });
            }
        }
    }
    Ok(())
}

fn describe<'l, W>(launch: &mut Launch<'l, W>, function: &KnownFunction, parts: &'l [Part]) {
    launch.grid(1).block(1);
    let mut effects = function.effects.iter();
    for part in parts {
        for (buffer, effect) in part.buffers.iter().zip(&mut effects) {
            match effect {
                OperandEffect::Scalar | OperandEffect::Reads => launch.read(buffer),
                OperandEffect::Overwrites => launch.write(buffer),
                OperandEffect::Writes | OperandEffect::ReadsAndWrites => launch.read_write(buffer),
            };
        }
        launch.value(part.count);
    }
}
