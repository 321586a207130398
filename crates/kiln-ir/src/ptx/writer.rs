//! The writer of a kernel: instructions, registers, labels, and the PTX version they need.

use std::collections::HashMap;
use std::fmt::Write;

use super::bounds_check_elimination::IndexProof;
use super::line_info::LineInfo;
use super::parameter_layout::ParameterLayout;
use super::register::{Class, Register};
use super::target::{Feature, PtxTarget, Version};
use super::tile::TilePlace;
use crate::declaration::{BufferId, ValueId};
use crate::divisibility::Divisibility;
use crate::literal::Literal;
use crate::operation::Operand;
use crate::program::Draft;
use crate::scalar_type::Type;
use crate::value_range::Ranges;

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(u32);

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "L{}", self.0)
    }
}

/// The labels of an open loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) next: Label,
    pub(super) exit: Label,
}

/// Values that are computed once, before the first statement.
#[derive(Debug, Default)]
pub(super) struct Once {
    /// The number of the thread in its block.
    pub(super) thread: Option<Register>,
    pub(super) lane: Option<Register>,
    /// How many lanes the warp has, if not always 32.
    pub(super) lanes: Option<Register>,
    /// The lanes the warp has.
    pub(super) mask: Option<String>,
    /// Address and length of each buffer.
    pub(super) pointers: Vec<Option<Register>>,
    pub(super) lengths: Vec<Option<Register>>,
    /// The lower half of each length, and whether there is more.
    pub(super) narrow_lengths: Vec<Option<[Register; 2]>>,
    /// Whether the address of a buffer is a multiple of so many bytes.
    pub(super) aligned: HashMap<(BufferId, u64), Register>,
    pub(super) scalars: Vec<Option<Register>>,
    /// The elements of each tile that the lane holds, and where: its row and column in every piece.
    pub(super) tiles: Vec<Option<Vec<Register>>>,
    pub(super) tile_place: Option<TilePlace>,
    pub(super) status: Option<Register>,
    pub(super) grid_barrier: Option<Register>,
    /// How many arrivals the next grid barrier waits for.
    pub(super) round: Option<Register>,
}

/// A kernel that is being written.
pub(super) struct Writer<'d> {
    pub(super) draft: &'d Draft,
    pub(super) target: PtxTarget,
    pub(super) layout: &'d ParameterLayout,
    pub(super) ranges: Ranges,
    pub(super) multiples: Divisibility,
    pub(super) proof: IndexProof,
    pub(super) version: Version,
    pub(super) values: Vec<Option<Register>>,
    pub(super) variables: Vec<Option<Register>>,
    /// Values that were loaded with the first of their group.
    pub(super) loaded: HashMap<ValueId, Register>,
    pub(super) loops: Vec<Loop>,
    pub(super) once: Once,
    /// Instructions that stand before the first statement, and the statements'.
    pub(super) prologue: String,
    pub(super) body: String,
    /// Where instructions come from, if that is to be said.
    pub(super) lines: Option<LineInfo>,
    counts: [u32; 6],
    labels: u32,
}

/// Writes one instruction.
macro_rules! ins {
    ($writer:expr, $($format:tt)*) => { $writer.line(&format!($($format)*)) };
}
pub(super) use ins;

impl<'d> Writer<'d> {
    pub(super) fn new(draft: &'d Draft, target: PtxTarget, layout: &'d ParameterLayout) -> Self {
        let buffers = draft.buffers.len();
        let once = Once {
            pointers: vec![None; buffers],
            lengths: vec![None; buffers],
            narrow_lengths: vec![None; buffers],
            scalars: vec![None; draft.scalars.len()],
            tiles: vec![None; draft.tiles.len()],
            ..Once::default()
        };
        Self {
            draft,
            target,
            layout,
            ranges: Ranges::new(draft),
            multiples: Divisibility::new(draft),
            proof: IndexProof::new(draft),
            version: target.version(),
            values: vec![None; draft.values.len()],
            variables: vec![None; draft.variables.len()],
            loaded: HashMap::new(),
            loops: Vec::new(),
            once,
            prologue: String::new(),
            body: String::new(),
            lines: None,
            counts: [0; 6],
            labels: 0,
        }
    }

    /// Writes an instruction of a statement.
    pub(super) fn line(&mut self, text: &str) {
        let _ = writeln!(self.body, "    {text};");
    }

    /// Writes an instruction before all statements.
    pub(super) fn early(&mut self, text: &str) {
        let _ = writeln!(self.prologue, "    {text};");
    }

    pub(super) fn place(&mut self, label: Label) {
        let _ = writeln!(self.body, "{label}:");
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels += 1;
        Label(self.labels - 1)
    }

    pub(super) fn fresh(&mut self, class: Class) -> Register {
        let count = &mut self.counts[class as usize];
        *count += 1;
        Register { class, number: *count - 1 }
    }

    /// The declarations of all registers.
    pub(super) fn declarations(&self) -> String {
        let used = Class::ALL.into_iter().filter(|class| self.counts[*class as usize] > 0);
        let line = |class: Class| {
            format!("    .reg .{} {}<{}>;\n", class.name(), class.prefix(), self.counts[class as usize])
        };
        used.map(line).collect()
    }

    /// Whether the target has a feature; if so, the version of PTX becomes one that has it.
    pub(super) fn uses(&mut self, feature: Feature) -> bool {
        let has = self.target.has(feature);
        if has {
            self.version = self.version.max(feature.since().1);
        }
        has
    }

    pub(super) fn ty(&self, operand: Operand) -> Type {
        self.draft.type_of(operand).unwrap_or(Type::U32)
    }

    /// An operand as an instruction has it: a register, or a number where instructions take one.
    pub(super) fn operand(&mut self, operand: Operand) -> String {
        match operand {
            Operand::Value(_) => self.register(operand).to_string(),
            Operand::Literal(literal) => match Class::of(literal.ty()) {
                Class::Pred | Class::B16 => self.register(operand).to_string(),
                _ => immediate(literal),
            },
        }
    }

    /// An operand in a register.
    pub(super) fn register(&mut self, operand: Operand) -> Register {
        match operand {
            Operand::Value(id) => match self.values.get(id.index()).copied().flatten() {
                Some(register) => register,
                // Verified programs use no value before it is there.
                None => self.fresh(Class::of(self.ty(operand))),
            },
            Operand::Literal(literal) => {
                let to = self.fresh(Class::of(literal.ty()));
                match to.class {
                    Class::Pred => ins!(self, "setp.ne.u32 {to}, {}, 0", literal.bits()),
                    class => ins!(self, "mov.{} {to}, {}", class.name(), immediate(literal)),
                }
                to
            }
        }
    }

    /// A new register with what an instruction `name to, a, b, ...` gives.
    pub(super) fn compute(&mut self, class: Class, name: &str, operands: &[&str]) -> Register {
        let to = self.fresh(class);
        ins!(self, "{name} {to}, {}", operands.join(", "));
        to
    }
}

/// A literal as instructions have it.
pub(super) fn immediate(literal: Literal) -> String {
    match literal.ty() {
        Type::F32 => format!("0f{:08X}", literal.bits()),
        Type::F64 => format!("0d{:016X}", literal.bits()),
        Type::F16 | Type::Bf16 => format!("0x{:04X}", literal.bits()),
        _ => literal.as_integer().to_string(),
    }
}
