//! The prologue: parameters, the index of the thread, the lanes of the warp, computed before the first statement.

use super::emit::shared_size;
use super::parameter_layout::EntryParameterKind;
use super::register::{Class, Register};
use super::writer::Writer;
use crate::declaration::{BufferId, ScalarId};
use crate::operation::Axis;
use crate::scalar_type::Type;

/// Pieces a thread clears one by one; for more there is a loop.
const CLEAR_ROUNDS: u64 = 4;

impl Writer<'_> {
    fn load_parameter(&mut self, kind: EntryParameterKind, class: Class, ty: &str) -> Register {
        let register = self.fresh(class);
        let number = self.parameter(kind);
        self.early(&format!("ld.param.{ty} {register}, [parameter_{number}]"));
        register
    }

    /// The address of a buffer in global memory.
    pub(super) fn pointer(&mut self, id: BufferId) -> Register {
        if let Some(register) = self.once.pointers[id.index()] {
            return register;
        }
        let generic = self.load_parameter(EntryParameterKind::Pointer(id), Class::B64, "u64");
        let register = self.fresh(Class::B64);
        self.early(&format!("cvta.to.global.u64 {register}, {generic}"));
        self.once.pointers[id.index()] = Some(register);
        register
    }

    /// How many elements a buffer has. One that is like another has the same, so its own parameter is not read.
    pub(super) fn length(&mut self, id: BufferId) -> Register {
        let id = super::bounds_check_elimination::sized(self.draft, id);
        if let Some(register) = self.once.lengths[id.index()] {
            return register;
        }
        let register = match self.draft.known_count(id) {
            Some(count) => {
                let register = self.fresh(Class::B64);
                self.early(&format!("mov.b64 {register}, {}", count as i64));
                register
            }
            None => self.load_parameter(EntryParameterKind::Length(id), Class::B64, "u64"),
        };
        self.once.lengths[id.index()] = Some(register);
        register
    }

    /// The lower half of a length, and whether there is more: an index of 32 bits is compared with them in one step.
    pub(super) fn narrow_length(&mut self, id: BufferId) -> [Register; 2] {
        let id = super::bounds_check_elimination::sized(self.draft, id);
        if let Some(registers) = self.once.narrow_lengths[id.index()] {
            return registers;
        }
        let length = self.length(id);
        let (low, beyond) = (self.fresh(Class::B32), self.fresh(Class::Pred));
        self.early(&format!("cvt.u32.u64 {low}, {length}"));
        self.early(&format!("setp.gt.u64 {beyond}, {length}, {}", u32::MAX));
        self.once.narrow_lengths[id.index()] = Some([low, beyond]);
        [low, beyond]
    }

    /// Whether the address of a buffer is a multiple of a power of two.
    pub(super) fn aligned(&mut self, id: BufferId, bytes: u64) -> Register {
        if let Some(register) = self.once.aligned.get(&(id, bytes)) {
            return *register;
        }
        let pointer = self.pointer(id);
        let (rest, aligned) = (self.fresh(Class::B64), self.fresh(Class::Pred));
        self.early(&format!("and.b64 {rest}, {pointer}, {}", bytes - 1));
        self.early(&format!("setp.eq.u64 {aligned}, {rest}, 0"));
        self.once.aligned.insert((id, bytes), aligned);
        aligned
    }

    /// A scalar.
    pub(super) fn scalar(&mut self, id: ScalarId) -> Register {
        if let Some(register) = self.once.scalars[id.index()] {
            return register;
        }
        let ty = self.draft.scalars[id.index()].ty;
        let register = match ty {
            Type::Bool => {
                let byte = self.load_parameter(EntryParameterKind::Scalar(id), Class::B32, "u8");
                let register = self.fresh(Class::Pred);
                self.early(&format!("setp.ne.u32 {register}, {byte}, 0"));
                register
            }
            _ => self.load_parameter(
                EntryParameterKind::Scalar(id),
                Class::of(ty),
                super::parameter_layout::memory_type(ty),
            ),
        };
        self.once.scalars[id.index()] = Some(register);
        register
    }

    /// The address of the status words.
    pub(super) fn status(&mut self) -> Register {
        if let Some(register) = self.once.status {
            return register;
        }
        let generic = self.load_parameter(EntryParameterKind::Status, Class::B64, "u64");
        let register = self.fresh(Class::B64);
        self.early(&format!("cvta.to.global.u64 {register}, {generic}"));
        self.once.status = Some(register);
        register
    }

    /// The address of the word where blocks count their arrivals.
    pub(super) fn grid_barrier(&mut self) -> Register {
        if let Some(register) = self.once.grid_barrier {
            return register;
        }
        let generic = self.load_parameter(EntryParameterKind::GridBarrier, Class::B64, "u64");
        let register = self.fresh(Class::B64);
        self.early(&format!("cvta.to.global.u64 {register}, {generic}"));
        self.once.grid_barrier = Some(register);
        register
    }

    /// Threads of a block.
    pub(super) fn threads(&self) -> u32 {
        self.draft.block.iter().product()
    }

    /// The number of the thread in its block: along x, then y, then z.
    pub(super) fn thread_number(&mut self) -> Register {
        if let Some(register) = self.once.thread {
            return register;
        }
        let [width, height, depth] = self.draft.block;
        let mut number = self.fresh(Class::B32);
        self.early(&format!("mov.u32 {number}, %tid.x"));
        for (axis, count, stride) in [(Axis::Y, height, width), (Axis::Z, depth, width * height)] {
            if count > 1 {
                let (place, sum) = (self.fresh(Class::B32), self.fresh(Class::B32));
                self.early(&format!("mov.u32 {place}, %tid.{axis}"));
                self.early(&format!("mad.lo.u32 {sum}, {place}, {stride}, {number}"));
                number = sum;
            }
        }
        self.once.thread = Some(number);
        number
    }

    /// The lane of the thread.
    pub(super) fn lane(&mut self) -> Register {
        if let Some(register) = self.once.lane {
            return register;
        }
        let thread = self.thread_number();
        let lane = self.fresh(Class::B32);
        self.early(&format!("and.b32 {lane}, {thread}, 31"));
        self.once.lane = Some(lane);
        lane
    }

    /// How many lanes the warp has: a number, or a register if the last warp has fewer than the others.
    pub(super) fn lanes(&mut self) -> String {
        let rest = self.threads() % 32;
        if rest == 0 {
            return "32".to_owned();
        }
        if let Some(register) = self.once.lanes {
            return register.to_string();
        }
        let thread = self.thread_number();
        let (first, lanes) = (self.fresh(Class::B32), self.fresh(Class::B32));
        let threads = self.threads();
        // What is left from the first lane of this warp on, at most 32.
        self.early(&format!("and.b32 {first}, {thread}, -32"));
        self.early(&format!("sub.u32 {lanes}, {threads}, {first}"));
        self.early(&format!("min.u32 {lanes}, {lanes}, 32"));
        self.once.lanes = Some(lanes);
        lanes.to_string()
    }

    /// The lanes the warp has, as bits.
    pub(super) fn mask(&mut self) -> String {
        if let Some(mask) = &self.once.mask {
            return mask.clone();
        }
        let lanes = self.lanes();
        let mask = if lanes == "32" {
            "-1".to_owned()
        } else {
            let (gone, mask) = (self.fresh(Class::B32), self.fresh(Class::B32));
            self.early(&format!("sub.u32 {gone}, 32, {lanes}"));
            self.early(&format!("shr.u32 {mask}, -1, {gone}"));
            mask.to_string()
        };
        self.once.mask = Some(mask.clone());
        mask
    }

    /// Sets shared memory to zero, all threads together, before the first statement.
    pub(super) fn clear_shared(&mut self) {
        let shared: Vec<_> = self.draft.shared.iter().filter(|shared| !shared.raw).collect();
        if shared.is_empty() {
            return;
        }
        let thread = self.thread_number();
        for shared in shared {
            let name = format!("shared_{}", shared.name);
            match shared_size(shared) {
                // In pieces as large as a store can be; what is declared is aligned to that.
                Some(bytes) if bytes % 16 == 0 => self.clear_known(&name, thread, bytes, 16),
                Some(bytes) => self.clear_known(&name, thread, bytes, 4),
                None => {
                    let bytes = self.fresh(Class::B32);
                    self.early(&format!("mov.u32 {bytes}, %dynamic_smem_size"));
                    self.clear(&name, thread, &bytes.to_string(), 1);
                }
            }
        }
        self.early("bar.sync 0");
    }

    /// Clears so many bytes, without a loop if each thread has only a few pieces.
    fn clear_known(&mut self, name: &str, thread: Register, bytes: u64, unit: u32) {
        let (threads, pieces) = (u64::from(self.threads()), bytes / u64::from(unit));
        let rounds = pieces.div_ceil(threads);
        if rounds > CLEAR_ROUNDS {
            return self.clear(name, thread, &bytes.to_string(), unit);
        }
        let (start, address) = (self.fresh(Class::B32), self.fresh(Class::B32));
        self.early(&format!("mov.u32 {start}, {name}"));
        self.early(&format!("mad.lo.u32 {address}, {thread}, {unit}, {start}"));
        for round in 0..rounds {
            let offset = round * threads * u64::from(unit);
            let left = pieces - round * threads;
            if left >= threads {
                self.early(&format!("{} [{address}+{offset}], {}", zero_store(unit), zeros(unit)));
            } else {
                let guard = self.fresh(Class::Pred);
                self.early(&format!("setp.lt.u32 {guard}, {thread}, {left}"));
                self.early(&format!("@{guard} {} [{address}+{offset}], {}", zero_store(unit), zeros(unit)));
            }
        }
    }

    /// Threads take turns with pieces of `unit` bytes.
    fn clear(&mut self, name: &str, thread: Register, bytes: &str, unit: u32) {
        let (start, offset, address) =
            (self.fresh(Class::B32), self.fresh(Class::B32), self.fresh(Class::B32));
        let done = self.fresh(Class::Pred);
        let (round, end) = (self.label(), self.label());
        let stride = self.threads() * unit;
        self.early(&format!("mov.u32 {start}, {name}"));
        self.early(&format!("mul.lo.u32 {offset}, {thread}, {unit}"));
        self.early(&format!("setp.ge.u32 {done}, {offset}, {bytes}"));
        self.early(&format!("@{done} bra {end}"));
        self.prologue.push_str(&format!("{round}:\n"));
        self.early(&format!("add.u32 {address}, {start}, {offset}"));
        self.early(&format!("{} [{address}], {}", zero_store(unit), zeros(unit)));
        self.early(&format!("add.u32 {offset}, {offset}, {stride}"));
        self.early(&format!("setp.lt.u32 {done}, {offset}, {bytes}"));
        self.early(&format!("@{done} bra {round}"));
        self.prologue.push_str(&format!("{end}:\n"));
    }
}

/// The store of a piece of shared memory.
fn zero_store(unit: u32) -> &'static str {
    match unit {
        16 => "st.shared.v4.u32",
        4 => "st.shared.u32",
        _ => "st.shared.u8",
    }
}

/// What it stores.
fn zeros(unit: u32) -> &'static str {
    if unit == 16 { "{0, 0, 0, 0}" } else { "0" }
}
