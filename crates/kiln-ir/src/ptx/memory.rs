//! Loads and stores. Every access whose index could be out of range stands behind a predicate.

use super::parameter_layout::memory_type;
use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::declaration::{BufferId, VariableId};
use crate::literal::Literal;
use crate::operation::{MemoryOperand, Operand};
use crate::scalar_type::Type;

/// Where an access goes.
pub(super) struct Spot {
    /// `[%rd3]`.
    pub(super) address: String,
    /// `@%p4 ` if the access happens only where that holds, otherwise nothing.
    pub(super) guard: String,
    /// `global` or `shared`.
    pub(super) space: &'static str,
    pub(super) ty: Type,
}

/// An index in a register.
#[derive(Clone, Debug)]
pub(super) enum Index {
    /// Of 32 bits, never negative.
    Narrow(String),
    /// Of 64 bits, a negative one beyond every length.
    Wide(String),
}

impl Writer<'_> {
    pub(super) fn read(&mut self, id: VariableId) -> Register {
        let variable = self.variable(id);
        // A copy: the variable may change while the value is in use.
        let class = variable.class;
        self.compute(class, &format!("mov.{}", class.name()), &[&variable.to_string()])
    }

    pub(super) fn variable(&mut self, id: VariableId) -> Register {
        if let Some(register) = self.variables[id.index()] {
            return register;
        }
        let register = self.fresh(Class::of(self.draft.variables[id.index()].ty));
        self.variables[id.index()] = Some(register);
        register
    }

    pub(super) fn assign(&mut self, id: VariableId, value: Operand) {
        let variable = self.variable(id);
        let value = self.operand(value);
        ins!(self, "mov.{} {variable}, {value}", variable.class.name());
    }

    pub(super) fn length_of(&mut self, memory: MemoryOperand) -> Register {
        match memory {
            MemoryOperand::Buffer(id) => self.length(id),
            MemoryOperand::Shared(id) => match self.draft.shared[id.index()].count {
                Some(count) => self.compute(Class::B64, "mov.b64", &[&count.to_string()]),
                None => {
                    let count = self.dynamic_count(self.draft.shared[id.index()].element).to_string();
                    self.compute(Class::B64, "cvt.u64.u32", &[&count])
                }
            },
        }
    }

    /// How many elements fit in the dynamic shared memory.
    fn dynamic_count(&mut self, ty: Type) -> Register {
        let bytes = self.compute(Class::B32, "mov.u32", &["%dynamic_smem_size"]).to_string();
        self.compute(Class::B32, "shr.u32", &[&bytes, &ty.bytes().trailing_zeros().to_string()])
    }

    pub(super) fn spot(&mut self, memory: MemoryOperand, index: Operand) -> Spot {
        match memory {
            MemoryOperand::Buffer(id) => self.global_spot(id, index),
            MemoryOperand::Shared(_) => self.shared_spot(memory, index),
        }
    }

    /// An index as it is compared and multiplied.
    pub(super) fn index(&mut self, index: Operand) -> Index {
        let ty = self.ty(index);
        if let Operand::Literal(literal) = index {
            return Index::Wide((literal.as_integer() as i64).to_string());
        }
        let is_narrow = ty.bits() <= 32 && self.ranges.is_natural(self.draft, index);
        let register = self.register(index).to_string();
        match (ty.bits() == 64, ty.is_signed()) {
            _ if is_narrow => Index::Narrow(register),
            (true, _) => Index::Wide(register),
            (false, true) => Index::Wide(self.compute(Class::B64, "cvt.s64.s32", &[&register]).to_string()),
            (false, false) => Index::Wide(self.compute(Class::B64, "cvt.u64.u32", &[&register]).to_string()),
        }
    }

    fn global_spot(&mut self, id: BufferId, index: Operand) -> Spot {
        let is_proven = self.is_proven(MemoryOperand::Buffer(id), index);
        let index = self.index(index);
        self.spot_at(id, &index, is_proven)
    }

    /// Where an element of a buffer is, by an index that is in range or is checked.
    pub(super) fn spot_at(&mut self, id: BufferId, index: &Index, is_proven: bool) -> Spot {
        let buffer = &self.draft.buffers[id.index()];
        let (ty, unchecked) = (buffer.element, buffer.unchecked);
        let guard = match unchecked || is_proven {
            true => String::new(),
            false => format!("@{} ", self.inside(id, index, None)),
        };
        Spot { address: format!("[{}]", self.address(id, index)), guard, space: "global", ty }
    }

    /// The address of an element of a buffer.
    fn address(&mut self, id: BufferId, index: &Index) -> Register {
        let start = self.pointer(id).to_string();
        let size = self.draft.buffers[id.index()].element.bytes().to_string();
        match index {
            Index::Narrow(index) => {
                // In two steps, which the assembler joins; of one it makes a pair.
                let bytes = self.compute(Class::B64, "mul.wide.u32", &[index, &size]).to_string();
                self.compute(Class::B64, "add.u64", &[&start, &bytes])
            }
            Index::Wide(index) => self.compute(Class::B64, "mad.lo.u64", &[index, &size, &start]),
        }
    }

    /// Whether an index is in range of a buffer, and another condition holds too, if there is one.
    pub(super) fn inside(&mut self, id: BufferId, index: &Index, also: Option<Register>) -> Register {
        let count = self.draft.known_count(id).filter(|count| *count <= u64::from(u32::MAX));
        let inside = match (index, count) {
            (Index::Narrow(index), Some(count)) => {
                self.compute(Class::Pred, "setp.lt.u32", &[index, &count.to_string()])
            }
            // Every number of 32 bits is below a length that has more.
            (Index::Narrow(index), None) => {
                let [low, beyond] = self.narrow_length(id).map(|register| register.to_string());
                self.compute(Class::Pred, "setp.lt.or.u32", &[index, &low, &beyond])
            }
            (Index::Wide(index), _) => {
                let length = self.length(id).to_string();
                self.compute(Class::Pred, "setp.gt.u64", &[&length, index])
            }
        };
        match also {
            Some(also) => self.compute(Class::Pred, "and.pred", &[&inside.to_string(), &also.to_string()]),
            None => inside,
        }
    }

    fn shared_spot(&mut self, memory: MemoryOperand, index: Operand) -> Spot {
        let MemoryOperand::Shared(id) = memory else {
            return Spot { address: String::new(), guard: String::new(), space: "shared", ty: Type::U32 };
        };
        let (ty, count) = (self.draft.shared[id.index()].element, self.draft.shared[id.index()].count);
        let inside = self.is_proven(memory, index);
        let start =
            self.compute(Class::B32, "mov.u32", &[&format!("shared_{}", self.draft.shared[id.index()].name)]);
        let is_wide = self.ty(index).bits() == 64;
        let place = self.operand(index);
        let guard = if inside {
            String::new()
        } else {
            // A negative index is beyond every count when it is read without its sign.
            let (class, name) = if is_wide { (Class::B64, "u64") } else { (Class::B32, "u32") };
            let count = match count {
                Some(count) => count.to_string(),
                None => {
                    let count = self.dynamic_count(ty).to_string();
                    if is_wide { self.compute(class, "cvt.u64.u32", &[&count]).to_string() } else { count }
                }
            };
            let place = self.compute(class, &format!("mov.{}", class.name()), &[&place]).to_string();
            format!("@{} ", self.compute(Class::Pred, &format!("setp.lt.{name}"), &[&place, &count]))
        };
        let place = match is_wide {
            true => {
                let place = self.compute(Class::B64, "mov.b64", &[&place]).to_string();
                self.compute(Class::B32, "cvt.u32.u64", &[&place]).to_string()
            }
            false => place,
        };
        let address =
            self.compute(Class::B32, "mad.lo.u32", &[&place, &ty.bytes().to_string(), &start.to_string()]);
        Spot { address: format!("[{address}]"), guard, space: "shared", ty }
    }

    /// Where an element is whose index is in a register of 64 bits.
    pub(super) fn spot_of(&mut self, memory: MemoryOperand, index: Register, is_proven: bool) -> Spot {
        let id = match memory {
            MemoryOperand::Buffer(id) => {
                return self.spot_at(id, &Index::Wide(index.to_string()), is_proven);
            }
            MemoryOperand::Shared(id) => id,
        };
        let ty = self.draft.shared[id.index()].element;
        let guard = match is_proven {
            true => String::new(),
            false => {
                let count = self.length_of(memory).to_string();
                let inside = self.compute(Class::Pred, "setp.gt.u64", &[&count, &index.to_string()]);
                format!("@{inside} ")
            }
        };
        let start = format!("shared_{}", self.draft.shared[id.index()].name);
        let start = self.compute(Class::B32, "mov.u32", &[&start]).to_string();
        let place = self.compute(Class::B32, "cvt.u32.u64", &[&index.to_string()]).to_string();
        let address = self.compute(Class::B32, "mad.lo.u32", &[&place, &ty.bytes().to_string(), &start]);
        Spot { address: format!("[{address}]"), guard, space: "shared", ty }
    }

    pub(super) fn load(&mut self, memory: MemoryOperand, index: Operand) -> Register {
        let spot = self.spot(memory, index);
        let to = self.fresh(loaded_class(spot.ty));
        self.load_to(to, memory, &spot);
        self.as_loaded(spot.ty, to)
    }

    /// The name of a load up to its type.
    pub(super) fn load_name(&self, memory: MemoryOperand) -> &'static str {
        match memory {
            MemoryOperand::Shared(_) => "ld.shared",
            // What only this launch could write and does not may go through the read-only cache.
            MemoryOperand::Buffer(id) if !self.draft.buffers[id.index()].role.is_writable() => "ld.global.nc",
            MemoryOperand::Buffer(_) => "ld.global",
        }
    }

    /// Loads an element, or zero where it is out of range.
    pub(super) fn load_to(&mut self, to: Register, memory: MemoryOperand, spot: &Spot) {
        if !spot.guard.is_empty() {
            let zero = if spot.ty == Type::Bool { Type::U32 } else { spot.ty };
            let zero = super::writer::immediate(Literal::zero(zero));
            ins!(self, "mov.{} {to}, {zero}", to.class.name());
        }
        let name = self.load_name(memory);
        ins!(self, "{}{name}.{} {to}, {}", spot.guard, memory_type(spot.ty), spot.address);
    }

    /// What was loaded, as values of its type are kept.
    pub(super) fn as_loaded(&mut self, ty: Type, loaded: Register) -> Register {
        match ty {
            Type::Bool => self.compute(Class::Pred, "setp.ne.u32", &[&loaded.to_string(), "0"]),
            _ => loaded,
        }
    }

    /// A value as it is stored.
    pub(super) fn as_stored(&mut self, ty: Type, value: Operand) -> String {
        let value = self.operand(value);
        match ty {
            Type::Bool => self.compute(Class::B32, "selp.b32", &["1", "0", &value]).to_string(),
            _ => value,
        }
    }

    pub(super) fn store(&mut self, memory: MemoryOperand, index: Operand, value: Operand) {
        let spot = self.spot(memory, index);
        let value = self.as_stored(spot.ty, value);
        ins!(self, "{}st.{}.{} {}, {value}", spot.guard, spot.space, memory_type(spot.ty), spot.address);
    }
}

/// The kind of register an element is loaded into.
pub(super) fn loaded_class(ty: Type) -> Class {
    if ty == Type::Bool { Class::B32 } else { Class::of(ty) }
}
