//! Loads and stores. Every access whose index could be out of range stands behind a predicate.

use super::layout::memory_type;
use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::declaration::{BufferId, VariableId};
use crate::literal::Literal;
use crate::operation::{Memory, Operand};
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

    pub(super) fn length_of(&mut self, memory: Memory) -> Register {
        match memory {
            Memory::Buffer(id) => self.length(id),
            Memory::Shared(id) => match self.draft.shared[id.index()].count {
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

    pub(super) fn spot(&mut self, memory: Memory, index: Operand) -> Spot {
        match memory {
            Memory::Buffer(id) => self.global_spot(id, index),
            Memory::Shared(_) => self.shared_spot(memory, index),
        }
    }

    /// An index in 64 bits, negative ones beyond every length.
    fn wide_index(&mut self, index: Operand) -> String {
        let ty = self.ty(index);
        if let Operand::Literal(literal) = index {
            return (literal.as_integer() as i64).to_string();
        }
        let index = self.register(index);
        match (ty.bits() == 64, ty.is_signed()) {
            (true, _) => index.to_string(),
            (false, true) => self.compute(Class::B64, "cvt.s64.s32", &[&index.to_string()]).to_string(),
            (false, false) => self.compute(Class::B64, "cvt.u64.u32", &[&index.to_string()]).to_string(),
        }
    }

    fn global_spot(&mut self, id: BufferId, index: Operand) -> Spot {
        let buffer = &self.draft.buffers[id.index()];
        let (ty, unchecked) = (buffer.element, buffer.unchecked);
        let inside = unchecked || self.is_proven(Memory::Buffer(id), index);
        let start = self.pointer(id).to_string();
        let guard = match inside {
            true => String::new(),
            false => format!("@{} ", self.inside(id, index)),
        };
        let size = ty.bytes().to_string();
        let address = match self.narrow_index(index) {
            Some(narrow) => self.compute(Class::B64, "mad.wide.u32", &[&narrow.to_string(), &size, &start]),
            None => {
                let wide = self.wide_index(index);
                self.compute(Class::B64, "mad.lo.u64", &[&wide, &size, &start])
            }
        };
        Spot { address: format!("[{address}]"), guard, space: "global", ty }
    }

    /// An index of at most 32 bits that is never negative.
    fn narrow_index(&mut self, index: Operand) -> Option<Register> {
        let is_narrow = matches!(index, Operand::Value(_))
            && self.ty(index).bits() <= 32
            && self.ranges.is_natural(self.draft, index);
        is_narrow.then(|| self.register(index))
    }

    /// Whether an index is in range of a buffer.
    pub(super) fn inside(&mut self, id: BufferId, index: Operand) -> Register {
        let count = self.draft.known_count(id);
        match (self.narrow_index(index), count) {
            // Every number of 32 bits is below a count that has more.
            (Some(narrow), None) => {
                let [low, beyond] = self.narrow_length(id).map(|register| register.to_string());
                self.compute(Class::Pred, "setp.lt.or.u32", &[&narrow.to_string(), &low, &beyond])
            }
            (Some(narrow), Some(count)) if count <= u64::from(u32::MAX) => {
                self.compute(Class::Pred, "setp.lt.u32", &[&narrow.to_string(), &count.to_string()])
            }
            _ => {
                let wide = self.wide_index(index);
                let length = self.length(id);
                self.compute(Class::Pred, "setp.gt.u64", &[&length.to_string(), &wide])
            }
        }
    }

    fn shared_spot(&mut self, memory: Memory, index: Operand) -> Spot {
        let Memory::Shared(id) = memory else {
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

    pub(super) fn load(&mut self, memory: Memory, index: Operand) -> Register {
        let spot = self.spot(memory, index);
        // What only this launch could write and does not may go through the read-only cache.
        let constant =
            matches!(memory, Memory::Buffer(id) if !self.draft.buffers[id.index()].role.is_writable());
        let name = format!("ld.{}{}.{}", spot.space, if constant { ".nc" } else { "" }, memory_type(spot.ty));
        let class = if spot.ty == Type::Bool { Class::B32 } else { Class::of(spot.ty) };
        let to = self.fresh(class);
        if !spot.guard.is_empty() {
            let zero = super::writer::immediate(Literal::zero(if spot.ty == Type::Bool {
                Type::U32
            } else {
                spot.ty
            }));
            ins!(self, "mov.{} {to}, {zero}", class.name());
        }
        ins!(self, "{}{name} {to}, {}", spot.guard, spot.address);
        match spot.ty {
            Type::Bool => self.compute(Class::Pred, "setp.ne.u32", &[&to.to_string(), "0"]),
            _ => to,
        }
    }

    pub(super) fn store(&mut self, memory: Memory, index: Operand, value: Operand) {
        let spot = self.spot(memory, index);
        let value = self.operand(value);
        let value = match spot.ty {
            Type::Bool => self.compute(Class::B32, "selp.b32", &["1", "0", &value]).to_string(),
            _ => value,
        };
        ins!(self, "{}st.{}.{} {}, {value}", spot.guard, spot.space, memory_type(spot.ty), spot.address);
    }
}
