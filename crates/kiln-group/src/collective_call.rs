//! One call of collectives: checked, then queued or recorded.

use std::panic::Location;

use kiln_operation::{CollectiveGroup, CollectiveKind, CollectiveOperand, OperandEffect};
use kiln_runtime::internal::{CollectiveLabel, as_collective, called_from};
use kiln_runtime::{GraphBuilder, Launch, NodeId, Stream, Ticket};

use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
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
    parts: Result<Vec<Part>>,
    stream: Option<&'a Stream>,
}

impl<'a> CollectiveCall<'a> {
    pub(crate) fn new(communicator: &'a DeviceCommunicator, part: Result<Part>) -> Self {
        Self { communicator, parts: part.map(|part| vec![part]), stream: None }
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
            (Ok(mut parts), Ok(others)) => {
                parts.extend(others);
                Ok(parts)
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        Self { parts, stream: self.stream.or(other.stream), ..self }
    }

    /// Queues the call, after everything that it has to come after. It does not wait for the other ranks.
    ///
    /// # Errors
    /// Lengths that do not fit; buffers that share memory, of which one is written; another rank that called something else, with both values; a rank that is
    /// lost. Nothing is queued then.
    #[track_caller]
    pub fn submit(self) -> Result<Ticket> {
        let (communicator, stream) = (self.communicator, self.stream);
        let _context = called_from(communicator.runtime(), Location::caller());
        let (group, parts) = self.checked()?;
        let Some(kernel) = communicator.function(&group)? else {
            return one_rank::submit(communicator, &parts, stream);
        };
        let _turn = communicator.begin()?;
        let mut launch = communicator.runtime().launch(&kernel);
        if let Some(stream) = stream {
            launch.on(stream);
        }
        describe(&mut launch, communicator, &parts);
        let _collective = as_collective(communicator.runtime(), || labelled(communicator, &parts));
        // SAFETY: the operands lie inside of the buffers that are given, with the effects that are declared, and the collective ends: when all ranks
        // have called it, or by the deadline of the communicator.
        let submitted = unsafe { launch.submit() };
        let ticket = submitted.map_err(|source| communicator.refused(source))?;
        communicator.note(&ticket, RememberedCall::new(&parts));
        Ok(ticket)
    }

    /// Makes the call a node of a graph. Every rank replays its graph as often as the others.
    ///
    /// # Errors
    /// As for [`submit`](Self::submit); the graph is unchanged. What other ranks call is compared at each replay.
    pub fn record(self, graph: &mut GraphBuilder) -> Result<NodeId> {
        let communicator = self.communicator;
        let (group, parts) = self.checked()?;
        let Some(kernel) = communicator.function(&group)? else {
            return one_rank::record(communicator, &parts, graph);
        };
        communicator.note_graph();
        let mut launch = graph.launch(&kernel);
        describe(&mut launch, communicator, &parts);
        // SAFETY: as for `submit`, at each replay.
        unsafe { launch.record() }.map_err(|source| GroupError::Rank { rank: communicator.rank(), source })
    }

    /// What it does and the bytes of its larger buffer, for each collective of it; none for a call that is refused.
    pub(crate) fn described(&self) -> Vec<(CollectiveKind, u64)> {
        let size = self.communicator.size();
        self.parts.iter().flatten().map(|part| (part.collective.kind(), larger_bytes(part, size))).collect()
    }

    fn checked(self) -> Result<(CollectiveGroup, Vec<Part>)> {
        let (parts, rank, size) = (self.parts?, self.communicator.rank(), self.communicator.size());
        let group = CollectiveGroup::new(parts.iter().map(|part| part.collective).collect())
            .map_err(GroupError::collective)?;
        group.check(rank, size).map_err(GroupError::collective)?;
        let operands = group.operands(rank, size);
        let each =
            || parts.iter().zip(&operands).flat_map(|(part, operands)| part.buffers.iter().zip(operands));
        for (at, (buffer, operand)) in each().enumerate() {
            for (other, other_operand) in each().skip(at + 1) {
                let is_written = operand.effect.changes() || other_operand.effect.changes();
                if is_written && buffer.overlaps(other) {
                    let what = format!(
                        "`{}` and `{}` share memory, and one is written",
                        operand.name, other_operand.name
                    );
                    let next = "use buffers or views that do not overlap, or the collective in place";
                    return Err(GroupError::Collective { what, next });
                }
            }
        }
        Ok((group, parts))
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
    CollectiveLabel { name, communicator: communicator.number(), rank, ranks, bytes }
}

fn describe<'l, W>(launch: &mut Launch<'l, W>, communicator: &DeviceCommunicator, parts: &'l [Part]) {
    launch.grid(1).block(1);
    for part in parts {
        let operands = part.collective.operands(communicator.rank(), communicator.size());
        for (buffer, CollectiveOperand { effect, .. }) in part.buffers.iter().zip(operands) {
            match effect {
                OperandEffect::Scalar | OperandEffect::Reads => launch.read(buffer),
                OperandEffect::Overwrites => launch.write(buffer),
                OperandEffect::Writes | OperandEffect::ReadsAndWrites => launch.read_write(buffer),
            };
        }
        launch.value(part.count);
    }
}
