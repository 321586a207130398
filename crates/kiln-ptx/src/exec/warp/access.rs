//! An access to memory.

use crate::exec::address_halves::Halves;
use crate::exec::finding::{AccessKind, BadAccess};
use crate::exec::lowered_code::Strength;
use crate::exec::memory::generic_address::Place;

/// What an instruction does to memory, for checks and findings.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) kind: AccessKind,
    pub(super) place: Place,
    /// Bytes of all its parts together, and of one.
    pub(super) bytes: u32,
    pub(super) part_bytes: u32,
    pub(super) strength: Strength,
    /// The pattern of the addresses of all lanes, where it is known.
    pub(super) halves: Option<Halves>,
    /// The block whose shared memory it reaches, if it is another one.
    pub(super) block: Option<[u32; 3]>,
}

impl Access {
    pub(super) fn bad(&self, address: u64, near: String) -> BadAccess {
        let (memory, bytes, within) = (self.place.name(), self.bytes, String::new());
        let block = self.block;
        BadAccess {
            access: self.kind,
            memory,
            address,
            bytes,
            near,
            within,
            base: None,
            mistake: None,
            block,
        }
    }

    /// A plain access of parts of `part_bytes`, of which no pattern is known.
    pub(super) fn plain(kind: AccessKind, place: Place, bytes: u32, part_bytes: u32) -> Self {
        Self { kind, place, bytes, part_bytes, strength: Strength::default(), halves: None, block: None }
    }

    /// A read of the stack by a call.
    pub(super) fn stack(bytes: u32) -> Self {
        Self::plain(AccessKind::Read, Place::Local, bytes, bytes)
    }
}
