//! The steps the analysis runs: instructions reduced to how values move.

use std::collections::{HashMap, HashSet};

use crate::call::CallId;
use crate::register::RegisterId;
use crate::variable::VariableId;

/// A register numbered among those its function really uses; the analysis holds one value for each.
pub(super) type Slot = u32;

/// Where a step takes a value from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Register(Slot),
    /// The address of a variable.
    Address(VariableId, i64),
    Constant(i64),
    /// A number that has nothing to do with pointers.
    Plain,
    /// A pointer to something no parameter points at: a function, the driver's workspace.
    Module,
    /// Any pointer.
    Unknown,
}

/// How a result depends on its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// One of the operands, unchanged.
    Choose,
    /// `cvta`: the operand, which is a pointer for certain.
    Convert,
    /// `cvta.shared`: a pointer into shared memory for certain, whatever the operand is.
    ConvertShared,
    /// The first plus the second.
    Add,
    /// The first with some bits set or cleared: an aligned pointer, or its low bits.
    Align,
    /// The first minus the second.
    Subtract,
    /// The first times the second, plus the third.
    MultiplyAdd,
    /// A number that depends on the operands and points nowhere.
    Number,
    /// Anything else.
    Mix,
    /// A full-width value put together from narrow ones.
    Assemble,
    /// A narrow part of the operand.
    Piece,
    /// The operand shifted into the upper half.
    Raise,
    /// The operand shifted down from the upper half.
    Lower,
}

/// The memory an access reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Any: the address decides.
    Generic,
    /// Global or constant memory.
    Global,
    Local,
    Shared,
    /// Parameters of this function, or of a call it makes.
    Parameter,
    /// What a texture or surface shows, which is global memory; the address is its handle.
    Texels,
}

/// An address operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub(super) reach: Reach,
    pub(super) base: Source,
    pub(super) offset: i64,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl Touch {
    pub(super) const NOTHING: Self = Self { reads: false, writes: false };
    pub(super) const READ: Self = Self { reads: true, writes: false };
    pub(super) const WRITE: Self = Self { reads: false, writes: true };
    pub(super) const BOTH: Self = Self { reads: true, writes: true };
}

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Compute {
        operation: Operation,
        wide: bool,
        to: Slot,
        from: Box<[Source]>,
    },
    /// `width` bytes from memory.
    Load {
        to: Slot,
        target: Target,
        width: u32,
    },
    /// `width` bytes to memory.
    Store {
        target: Target,
        width: u32,
        from: Source,
    },
    /// An access through which no value flows that we follow.
    Access {
        target: Target,
        touch: Touch,
    },
    /// An access to unknown memory.
    Anywhere {
        touch: Touch,
        why: &'static str,
    },
    /// A result that is data of `width` bytes.
    Data {
        to: Slot,
        width: u32,
    },
    /// A result that is a new local address.
    Allocate {
        to: Slot,
    },
    Call(CallId),
}

impl Action {
    /// Whether the result depends on more than the registers it reads.
    pub(super) fn depends_on_shared(&self) -> bool {
        match self {
            Self::Compute { operation, .. } => matches!(
                operation,
                Operation::Add | Operation::Subtract | Operation::Align | Operation::MultiplyAdd
            ),
            Self::Data { .. } | Self::Allocate { .. } => false,
            Self::Load { .. }
            | Self::Store { .. }
            | Self::Access { .. }
            | Self::Anywhere { .. }
            | Self::Call(_) => true,
        }
    }
}

impl Action {
    /// The slot it assigns; calls assign theirs in another way.
    pub(super) fn written(&self) -> Option<Slot> {
        match self {
            Self::Compute { to, .. }
            | Self::Load { to, .. }
            | Self::Data { to, .. }
            | Self::Allocate { to } => Some(*to),
            Self::Store { .. } | Self::Access { .. } | Self::Anywhere { .. } | Self::Call(_) => None,
        }
    }

    pub(super) fn written_mut(&mut self) -> Option<&mut Slot> {
        match self {
            Self::Compute { to, .. }
            | Self::Load { to, .. }
            | Self::Data { to, .. }
            | Self::Allocate { to } => Some(to),
            Self::Store { .. } | Self::Access { .. } | Self::Anywhere { .. } | Self::Call(_) => None,
        }
    }

    /// The slots it reads; calls read theirs in another way.
    pub(super) fn read(&self) -> Vec<Slot> {
        let mut slots = Vec::new();
        self.clone().rename(&mut |slot| {
            slots.push(slot);
            slot
        });
        slots
    }

    /// Reads other slots in place of those it reads.
    pub(super) fn rename(&mut self, slot_for: &mut impl FnMut(Slot) -> Slot) {
        let mut rename = |source: &mut Source| {
            if let Source::Register(slot) = source {
                *slot = slot_for(*slot);
            }
        };
        match self {
            Self::Compute { from, .. } => from.iter_mut().for_each(rename),
            Self::Load { target, .. } | Self::Access { target, .. } => rename(&mut target.base),
            Self::Store { target, from, .. } => {
                rename(&mut target.base);
                rename(from);
            }
            Self::Data { .. } | Self::Allocate { .. } | Self::Anywhere { .. } | Self::Call(_) => {}
        }
    }
}

/// A step and the instruction it belongs to.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) instruction: u32,
}

/// The steps of one function.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) steps: Vec<Step>,
    slots: HashMap<RegisterId, Slot>,
    /// For each slot, the steps that read it.
    readers: Vec<Vec<u32>>,
    /// For each slot, whether any step assigns it.
    assigned: Vec<bool>,
    /// For each parameter variable, the loads from it and the calls that pass it.
    variable_readers: HashMap<VariableId, Vec<u32>>,
    /// Variables whose address is computed with, so that any load through a register may mean them.
    address_taken: HashSet<VariableId>,
    /// Loads through registers.
    indirect_loads: Vec<u32>,
    /// All calls.
    pub(super) calls: Vec<u32>,
}

impl Code {
    /// The slot of a register, new when it was not seen before.
    pub(super) fn slot(&mut self, register: RegisterId) -> Slot {
        let next = self.slots.len() as Slot;
        let slot = *self.slots.entry(register).or_insert(next);
        if slot == next {
            self.readers.push(Vec::new());
            self.assigned.push(false);
        }
        slot
    }

    /// A slot of no register.
    pub(super) fn new_slot(&mut self) -> Slot {
        self.readers.push(Vec::new());
        self.assigned.push(true);
        self.readers.len() as Slot - 1
    }

    /// Finds the readers of each slot again, after steps were given other slots. What calls read stays.
    pub(super) fn find_readers(&mut self) {
        let calls: HashSet<u32> = self.calls.iter().copied().collect();
        self.readers.iter_mut().for_each(|readers| readers.retain(|step| calls.contains(step)));
        for (index, step) in (0..).zip(&self.steps) {
            for slot in step.action.read() {
                if let Some(readers) = self.readers.get_mut(slot as usize) {
                    readers.push(index);
                }
            }
        }
    }

    /// The slot of a register that some step mentions.
    pub(super) fn find(&self, register: RegisterId) -> Option<Slot> {
        self.slots.get(&register).copied()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.readers.len()
    }

    pub(super) fn readers(&self, slot: Slot) -> &[u32] {
        self.readers.get(slot as usize).map_or(&[], |readers| readers)
    }

    /// The steps to run again when the content of a parameter variable changes.
    pub(super) fn variable_readers(&self, variable: VariableId) -> impl Iterator<Item = u32> + '_ {
        let direct = self.variable_readers.get(&variable).map_or(&[][..], |readers| readers);
        let indirect: &[u32] =
            if self.address_taken.contains(&variable) { &self.indirect_loads } else { &[] };
        direct.iter().chain(indirect).copied()
    }

    /// The slots that are never assigned.
    pub(super) fn unassigned(&self) -> impl Iterator<Item = Slot> + '_ {
        self.assigned.iter().enumerate().filter(|(_, assigned)| !**assigned).map(|(slot, _)| slot as Slot)
    }

    /// Notes that some step outside the list assigns `slot`.
    pub(super) fn assign(&mut self, slot: Slot) {
        if let Some(assigned) = self.assigned.get_mut(slot as usize) {
            *assigned = true;
        }
    }

    pub(super) fn push(&mut self, instruction: u32, action: Action) {
        let index = self.steps.len() as u32;
        match &action {
            Action::Compute { to, from, .. } => {
                for source in from {
                    self.read(index, *source);
                    if let Source::Address(variable, _) = source {
                        self.address_taken.insert(*variable);
                    }
                }
                self.assign(*to);
            }
            Action::Load { to, target, .. } => {
                self.read(index, target.base);
                match target.base {
                    Source::Address(variable, _) => self.read_variable(index, variable),
                    _ => self.indirect_loads.push(index),
                }
                self.assign(*to);
            }
            Action::Store { target, from, .. } => {
                self.read(index, target.base);
                self.read(index, *from);
                if let Source::Address(variable, _) = from {
                    self.address_taken.insert(*variable);
                }
            }
            Action::Access { target, .. } => self.read(index, target.base),
            Action::Data { to, .. } | Action::Allocate { to } => self.assign(*to),
            Action::Call(_) => self.calls.push(index),
            Action::Anywhere { .. } => {}
        }
        self.steps.push(Step { action, instruction });
    }

    /// Notes that the latest step also reads `source`, which it passes to a call.
    pub(super) fn pass(&mut self, source: Source) {
        let index = self.steps.len().saturating_sub(1) as u32;
        self.read(index, source);
        if let Source::Address(variable, _) = source {
            self.read_variable(index, variable);
        }
    }

    fn read(&mut self, step: u32, source: Source) {
        if let Source::Register(slot) = source
            && let Some(readers) = self.readers.get_mut(slot as usize)
        {
            readers.push(step);
        }
    }

    fn read_variable(&mut self, step: u32, variable: VariableId) {
        self.variable_readers.entry(variable).or_default().push(step);
    }
}
