//! Collectives that no rank has done when one is lost, done again on the communicator that takes the place of theirs.

use kiln_operation::{CollectiveKind, OperandEffect};
use kiln_runtime::Ticket;

use crate::collective_call::CollectiveCall;
use crate::collective_part::Part;
use crate::communicator::DeviceCommunicator;
use crate::error::{GroupError, Result};
use crate::rebuild::RebuiltCommunicator;
use crate::remembered_call::RememberedCall;

impl RebuiltCommunicator {
    /// Does the [repeatable](Self::repeatable) collectives again, on the new communicator and in their order. Every rank that is left calls it, and before other
    /// collectives; a replacement submits its part of each of them itself. Returns their numbers and new tickets.
    ///
    /// Without replacements they are done again by the ranks that are left: a sum is the sum of what those bring.
    ///
    /// # Errors
    /// This rank is a replacement; a buffer was freed since; what [`submit`](CollectiveCall::submit) answers.
    #[track_caller]
    pub fn repeat(&self) -> Result<Vec<(u64, Ticket)>> {
        let known = |number: &u64| self.remembered.get(number).map(|call| (*number, call));
        let calls: Option<Vec<_>> = self.repeatable.iter().map(known).collect();
        let Some(calls) = calls else {
            return Err(GroupError::Collective {
                what: "a replacement has submitted none of the collectives that are to be done again".into(),
                next: "submit its part of each collective that `repeatable` names",
            });
        };
        let mut tickets = Vec::with_capacity(calls.len());
        for (number, call) in calls {
            tickets.push((number, submit(call, &self.communicator, &self.former_ranks)?));
        }
        Ok(tickets)
    }
}

/// Submits a call on a communicator whose ranks had these numbers.
#[track_caller]
fn submit(call: &RememberedCall, communicator: &DeviceCommunicator, former_ranks: &[u32]) -> Result<Ticket> {
    let (rank, size) = (communicator.rank(), communicator.size());
    let failed = |source| GroupError::Rank { rank, source };
    let mut repeated: Option<CollectiveCall<'_>> = None;
    for (collective, count, buffers) in call.parts() {
        let root = collective.root_rank().and_then(|root| former_ranks.iter().position(|rank| *rank == root));
        let collective = root.map_or(*collective, |root| collective.root(root as u32));
        let mut part = Part::new(collective, *count);
        if collective.kind() == CollectiveKind::Barrier {
            part = part.with_bytes(communicator.scratch().clone())?;
        }
        for (buffer, operand) in buffers.iter().zip(collective.operands(rank, size)) {
            let Some(buffer) = buffer.upgrade() else { return Err(freed()) };
            if operand.effect != OperandEffect::Reads && buffer.access().is_err() {
                // Usable again from here on; the collective overwrites it.
                buffer.fill(0).map_err(failed)?;
            }
            part = part.with_bytes(buffer)?;
        }
        let next = CollectiveCall::new(communicator, Ok(part));
        repeated = Some(match repeated {
            Some(repeated) => repeated.and(next),
            None => next,
        });
    }
    repeated.ok_or_else(freed)?.submit()
}

fn freed() -> GroupError {
    GroupError::Collective {
        what: "a buffer of a collective that is to be done again was freed".into(),
        next: "keep the buffers of unfinished collectives until `repeat` has returned",
    }
}
