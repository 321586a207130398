//! Initial contents of variables.
//!
//! Kept as bytes plus the places where an address must be filled in: an address is known only when a loader has
//! laid the module out.

use crate::function::PtxFunctionId;
use crate::variable::VariableId;

/// The first content of a variable, from its start; what lies behind it is zero.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Initializer {
    /// Content, little endian, zero where a relocation fills it.
    pub bytes: Vec<u8>,
    /// Addresses to fill in, by rising offset.
    pub relocations: Vec<Relocation>,
}

/// An address inside an initializer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Relocation {
    /// Where in the variable, in bytes. The width is that of the variable's element type.
    pub offset: u64,
    /// Whose address.
    pub target: RelocationTarget,
    /// Bytes added to it.
    pub addend: i64,
    /// Whether the generic address is meant (`generic(x)`) and not the one in the target's space.
    pub generic: bool,
    /// `0xFF00(x)`: only these bits of the address, moved down to bit 0.
    pub mask: Option<u64>,
}

/// Whose address a [`Relocation`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelocationTarget {
    /// A variable.
    Variable(VariableId),
    /// A function.
    Function(PtxFunctionId),
}

impl Relocation {
    /// What to store when the target's address (with the space the relocation asks for) is `address`.
    pub fn value(&self, address: u64) -> u64 {
        let address = address.wrapping_add_signed(self.addend);
        match self.mask {
            None => address,
            Some(0) => 0,
            Some(mask) => (address & mask) >> mask.trailing_zeros(),
        }
    }
}
