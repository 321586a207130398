//! Registers of a function.
//!
//! PTX declares registers in groups (`.reg .b32 %r<10>`) and alone. A function numbers all of them densely in
//! declaration order, also those of inner blocks, so that an executor can hold them in one array; the groups keep
//! types and names, so that a hostile `%r<4000000000>` costs nothing until it is allocated.

use crate::name::Name;
use crate::scalar::ScalarType;

/// The dense number of a register within its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u32);

impl RegisterId {
    /// The number as an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Registers declared together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterGroup {
    /// The declared name, or the prefix of the names in a range.
    pub name: Name,
    /// Type of each register.
    pub ty: ScalarType,
    /// Elements of each register: 1, or 2 and 4 for `.v2` and `.v4` registers.
    pub vector: u8,
    /// `Some(n)` for a range `name<n>`, `None` for a single register.
    pub range: Option<u32>,
    /// The first register of the group.
    pub first: RegisterId,
}

impl RegisterGroup {
    /// Registers in the group.
    pub fn len(&self) -> u32 {
        self.range.unwrap_or(1)
    }

    /// Whether the group is an empty range.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// All registers of a function.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Registers {
    groups: Vec<RegisterGroup>,
    count: u32,
}

impl Registers {
    /// The most registers one function may declare.
    pub const MAX_COUNT: u32 = 1 << 24;

    /// Registers declared in all groups; numbers run from 0 to this.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The groups in declaration order, hence in the order of their numbers.
    pub fn groups(&self) -> &[RegisterGroup] {
        &self.groups
    }

    /// The group that declares `id`.
    pub fn group(&self, id: RegisterId) -> Option<&RegisterGroup> {
        let after = self.groups.partition_point(|group| group.first <= id);
        let group = self.groups.get(after.checked_sub(1)?)?;
        (id.0 - group.first.0 < group.len()).then_some(group)
    }

    /// The type of `id`.
    pub fn ty(&self, id: RegisterId) -> Option<ScalarType> {
        self.group(id).map(|group| group.ty)
    }

    /// The name of `id` as the text spells it.
    pub fn name(&self, id: RegisterId) -> Option<String> {
        let group = self.group(id)?;
        Some(match group.range {
            None => group.name.to_string(),
            Some(_) => format!("{}{}", group.name, id.0 - group.first.0),
        })
    }

    /// Adds a group; `None` when the function would exceed [`Registers::MAX_COUNT`].
    pub(crate) fn declare(
        &mut self,
        name: Name,
        ty: ScalarType,
        vector: u8,
        range: Option<u32>,
    ) -> Option<RegisterId> {
        let first = RegisterId(self.count);
        let count = self.count.checked_add(range.unwrap_or(1)).filter(|n| *n <= Self::MAX_COUNT)?;
        self.count = count;
        self.groups.push(RegisterGroup { name, ty, vector, range, first });
        Some(first)
    }
}
