//! Variables: globals, constants, shared and local arrays, parameters.

use crate::function::PtxFunctionId;
use crate::initializer::Initializer;
use crate::linkage::Linkage;
use crate::name::Name;
use crate::position::Origin;
use crate::scalar::ScalarType;
use crate::state_space::Space;

/// The number of a variable within its module; parameters and variables inside functions count too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u32);

impl VariableId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A variable of any space but `.reg`.
#[derive(Clone, Debug, PartialEq)]
pub struct PtxVariable {
    /// Its name.
    pub name: Name,
    /// Where it lives.
    pub space: Space,
    /// Who may see it.
    pub linkage: Option<Linkage>,
    /// Element type, dimensions, alignment.
    pub shape: VariableShape,
    /// `.ptr`: this parameter holds an address.
    pub pointer: Option<PointerMark>,
    /// First content; zero where the initializer says nothing.
    pub initializer: Option<Initializer>,
    /// `.attribute(...)`, as written.
    pub attributes: Vec<Name>,
    /// The function that declares it, for parameters and inner variables.
    pub owner: Option<PtxFunctionId>,
    /// Where it stood.
    pub origin: Origin,
}

/// Type, length and alignment of a variable or formal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VariableShape {
    /// Element type.
    pub ty: ScalarType,
    /// 1, or 2 and 4 for `.v2` and `.v4`.
    pub vector: u8,
    /// Array dimensions, outermost first; empty for a scalar. 0 is an open dimension `[]`.
    pub dimensions: Vec<u64>,
    /// `.align`, when written.
    pub align: Option<u32>,
}

/// `.ptr .global .align 4` on a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PointerMark {
    /// The space pointed to, generic when absent.
    pub space: Option<Space>,
    /// Alignment of what it points to, when written.
    pub align: Option<u32>,
}

impl VariableShape {
    /// The largest alignment accepted.
    pub const MAX_ALIGN_BYTES: u32 = 1 << 20;

    /// Bytes of one element, all its vector parts together.
    pub fn element_bytes(&self) -> u64 {
        u64::from(self.ty.size_bytes()) * u64::from(self.vector)
    }

    /// Elements in all dimensions; 0 when one is open. The parser refuses sizes beyond `u64`.
    pub fn element_count(&self) -> u64 {
        self.dimensions.iter().fold(1u64, |n, d| n.saturating_mul(*d))
    }

    /// Bytes in all; 0 when a dimension is open.
    pub fn size_bytes(&self) -> u64 {
        self.element_count().saturating_mul(self.element_bytes())
    }

    /// The alignment in force: as written, else that of one element.
    pub fn align_bytes(&self) -> u32 {
        self.align.unwrap_or(self.ty.size_bytes() * u32::from(self.vector))
    }

    /// Whether the length is left open, as of dynamic shared memory.
    pub fn is_open(&self) -> bool {
        self.dimensions.contains(&0)
    }
}
