//! Collectives that no rank has done when one is lost, done again on the communicator that takes the place of theirs.

use std::collections::BTreeMap;
use std::fmt;

use kiln_operation::{Collective, CollectiveKind, OperandEffect};
use kiln_runtime::Ticket;
use kiln_runtime::internal::{WeakBuffer, is_whole_block};

use crate::collective_call::CollectiveCall;
use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
use crate::rebuild::RebuiltCommunicator;

/// A collective, or a group of them, as it was submitted. Its buffers are remembered and not kept.
#[derive(Clone)]
pub(crate) struct RememberedCall {
    parts: Vec<(Collective, u64, Vec<WeakBuffer>)>,
}

/// The collectives of a rank that may be done again, by number.
pub(crate) type RememberedCalls = BTreeMap<u64, RememberedCall>;

impl RememberedCall {
    /// None for a call whose input may be gone: one that overwrites what it reads.
    pub(crate) fn new(parts: &[Part]) -> Option<Self> {
        if parts.iter().any(|part| part.collective.is_in_place()) {
            return None;
        }
        let remember = |part: &Part| {
            let buffers = match part.collective.kind() {
                // Its buffer is the communicator's.
                CollectiveKind::Barrier => Vec::new(),
                _ => part.buffers.iter().map(WeakBuffer::new).collect(),
            };
            (part.collective, part.count, buffers)
        };
        Some(Self { parts: parts.iter().map(remember).collect() })
    }

    /// Whether this rank can do it again: its buffers are there, what it reads is what it was, and what it writes can be overwritten.
    pub(crate) fn is_intact(&self, rank: u32, size: u32) -> bool {
        self.parts.iter().all(|(collective, _, buffers)| {
            let operands = collective.operands(rank, size);
            buffers.iter().zip(operands).all(|(buffer, operand)| match buffer.upgrade() {
                Some(buffer) if operand.effect == OperandEffect::Reads => buffer.access().is_ok(),
                Some(buffer) => buffer.access().is_ok() || is_whole_block(&buffer),
                None => false,
            })
        })
    }

    /// Whether it can be called alike by the ranks that are left, by their former numbers: its buffers do not depend on the number of ranks, and its root is there.
    pub(crate) fn fits(&self, left: &[u32], size: u32) -> bool {
        left.len() == size as usize
            || self.parts.iter().all(|(collective, ..)| match collective.kind() {
                CollectiveKind::AllReduce | CollectiveKind::Barrier => true,
                CollectiveKind::Reduce | CollectiveKind::Broadcast => {
                    collective.root_rank().is_some_and(|root| left.contains(&root))
                }
                _ => false,
            })
    }

    /// Submits it on a communicator whose ranks had these numbers.
    fn submit(&self, communicator: &DeviceCommunicator, former_ranks: &[u32]) -> Result<Ticket> {
        let (rank, size) = (communicator.rank(), communicator.size());
        let failed = |source| GroupError::Rank { rank, source };
        let mut call: Option<CollectiveCall<'_>> = None;
        for (collective, count, buffers) in &self.parts {
            let root =
                collective.root_rank().and_then(|root| former_ranks.iter().position(|rank| *rank == root));
            let collective = root.map_or(*collective, |root| collective.root(root as u32));
            let mut part = Part { collective, count: *count, buffers: Vec::new() };
            if collective.kind() == CollectiveKind::Barrier {
                part.buffers.push(communicator.scratch().clone());
            }
            for (buffer, operand) in buffers.iter().zip(collective.operands(rank, size)) {
                let Some(buffer) = buffer.upgrade() else { return Err(freed()) };
                if operand.effect != OperandEffect::Reads && buffer.access().is_err() {
                    // Usable again from here on; the collective overwrites it.
                    buffer.fill(0).map_err(failed)?;
                }
                part.buffers.push(buffer);
            }
            let next = CollectiveCall::new(communicator, Ok(part));
            call = Some(match call {
                Some(call) => call.and(next),
                None => next,
            });
        }
        call.ok_or_else(freed)?.submit()
    }
}

impl RebuiltCommunicator {
    /// Does the [repeatable](Self::repeatable) collectives again, on the new communicator and in their order. Every rank that is left calls it, and before other
    /// collectives; a replacement submits its part of each of them itself. Returns their numbers and new tickets.
    ///
    /// Without replacements they are done again by the ranks that are left: a sum is the sum of what those bring.
    ///
    /// # Errors
    /// This rank is a replacement; a buffer was freed since; what [`submit`](CollectiveCall::submit) answers.
    pub fn repeat(&self) -> Result<Vec<(u64, Ticket)>> {
        let known = |number: &u64| self.remembered.get(number).map(|call| (*number, call));
        let calls: Option<Vec<_>> = self.repeatable.iter().map(known).collect();
        let Some(calls) = calls else {
            return Err(GroupError::Collective {
                what: "a replacement has submitted none of the collectives that are to be done again".into(),
                next: "submit its part of each collective that `repeatable` names",
            });
        };
        let submit = |(number, call): (u64, &RememberedCall)| {
            call.submit(&self.communicator, &self.former_ranks).map(|ticket| (number, ticket))
        };
        calls.into_iter().map(submit).collect()
    }
}

fn freed() -> GroupError {
    GroupError::Collective {
        what: "a buffer of a collective that is to be done again was freed".into(),
        next: "keep the buffers of unfinished collectives until `repeat` has returned",
    }
}

impl fmt::Debug for RememberedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts.iter().map(|(collective, ..)| collective)).finish()
    }
}
