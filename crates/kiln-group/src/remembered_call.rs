//! Collectives as they were submitted, for those that are done again.

use std::collections::BTreeMap;
use std::fmt;

use kiln_operation::{Collective, CollectiveKind, OperandEffect};
use kiln_runtime::internal::{WeakBuffer, is_whole_block};

use crate::collective_part::Part;
use crate::few::{Few, UpToTwo};

/// A collective, or a group of them, as it was submitted. Its buffers are remembered and not kept.
#[derive(Clone)]
pub(crate) struct RememberedCall {
    parts: Few<RememberedPart>,
}

/// A collective, its count, and its buffers.
pub(crate) type RememberedPart = (Collective, u64, UpToTwo<WeakBuffer>);

/// The collectives of a rank that may be done again, by number.
pub(crate) type RememberedCalls = BTreeMap<u64, RememberedCall>;

impl RememberedCall {
    /// None for a call whose input may be gone: one that overwrites what it reads.
    pub(crate) fn new(parts: &[Part]) -> Option<Self> {
        if parts.iter().any(|part| part.collective.is_in_place()) {
            return None;
        }
        let remember = |part: &Part| -> RememberedPart {
            let mut buffers = UpToTwo::default();
            // The buffer of a barrier is the communicator's.
            if part.collective.kind() != CollectiveKind::Barrier {
                let fits = part.buffers.iter().all(|buffer| buffers.push(WeakBuffer::new(buffer)));
                debug_assert!(fits, "a collective has up to two buffers");
            }
            (part.collective, part.count, buffers)
        };
        let parts = match parts {
            [part] => Few::One(remember(part)),
            _ => Few::More(parts.iter().map(remember).collect()),
        };
        Some(Self { parts })
    }

    /// Its collectives.
    pub(crate) fn parts(&self) -> &[RememberedPart] {
        self.parts.as_slice()
    }

    /// Whether this rank can do it again: its buffers are there, what it reads is what it was, and what it writes can be overwritten.
    pub(crate) fn is_intact(&self, rank: u32, size: u32) -> bool {
        self.parts().iter().all(|(collective, _, buffers)| {
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
            || self.parts().iter().all(|(collective, ..)| match collective.kind() {
                CollectiveKind::AllReduce | CollectiveKind::Barrier => true,
                CollectiveKind::Reduce | CollectiveKind::Broadcast => {
                    collective.root_rank().is_some_and(|root| left.contains(&root))
                }
                _ => false,
            })
    }
}

impl fmt::Debug for RememberedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts().iter().map(|(collective, ..)| collective)).finish()
    }
}
