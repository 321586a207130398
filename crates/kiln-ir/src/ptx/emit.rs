//! A program into a module of PTX.

use super::layout::{Layout, ParameterKind, parameter_type};
use super::lines::Lines;
use super::target::Target;
use super::writer::Writer;
use crate::operation::Op;
use crate::program::{Draft, Program};
use crate::statement::{BarrierScope, Block, StatementKind};

/// A program as PTX, with what a launch must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The module. It has one entry, which has the name of the program.
    pub text: String,
    /// The parameters of the entry.
    pub layout: Layout,
    /// Whether the launch must be cooperative.
    pub cooperative: bool,
    /// Bytes of shared memory the module declares.
    pub shared_bytes: u64,
    /// The architecture it is for.
    pub target: Target,
}

impl Program {
    /// The program as PTX for an architecture, of the lowest version that has everything it uses.
    ///
    /// ```
    /// use kiln_ir::{Program, Target};
    ///
    /// let program = Program::parse("kernel fill(out x: u32[], v: u32) block(64) { x[global.x] = v; }")?;
    /// let emitted = program.emit(Target::new(70).unwrap());
    /// assert!(emitted.text.starts_with(".version 6.0\n.target sm_70\n"));
    /// assert_eq!(emitted.layout.bytes, 8 + 8 + 4);
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn emit(&self, target: Target) -> Emitted {
        self.emitted(target, None)
    }

    /// As [`emit`](Self::emit), with the line each statement was written in, so that whoever runs the code can name it. Statements of a
    /// text are said to be in the file `NAME.kir`, where `NAME` is that of the program.
    ///
    /// ```
    /// use kiln_ir::{Program, Target};
    ///
    /// let program = Program::parse("kernel fill(out x: u32[], v: u32) block(64) {\n    x[global.x] = v;\n}")?;
    /// let text = program.emit_with_lines(Target::new(70).unwrap()).text;
    /// assert!(text.contains(".file 1 \"fill.kir\"") && text.contains(".loc 1 2 5"));
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn emit_with_lines(&self, target: Target) -> Emitted {
        self.emitted(target, Some(Lines::new(&self.name)))
    }

    fn emitted(&self, target: Target, lines: Option<Lines>) -> Emitted {
        let program = self.expanded().simplified();
        let uses = Uses::of(&program.body);
        let layout = Layout::new(&program, uses.trap || uses.grid_barrier, uses.grid_barrier);
        let mut writer = Writer::new(&program, target, &layout);
        writer.lines = lines;
        writer.block(&program.body);
        writer.line("ret");
        writer.clear_shared();
        let text = module(&program, &writer, &layout);
        let shared_bytes = program.shared_bytes();
        Emitted { text, layout, cooperative: uses.grid_barrier, shared_bytes, target }
    }
}

impl Draft {
    /// Bytes of the shared memory it declares, without the dynamic one.
    pub fn shared_bytes(&self) -> u64 {
        let sizes = self.shared.iter().filter_map(shared_size);
        sizes.fold(0u64, |sum, bytes| sum.next_multiple_of(16).saturating_add(bytes))
    }

    /// Whether its blocks wait for each other, so that a launch must be cooperative.
    pub fn meets_in_grid(&self) -> bool {
        Uses::of(&self.body).grid_barrier
    }

    /// Whether it can trap.
    pub fn can_trap(&self) -> bool {
        Uses::of(&self.body).trap
    }
}

/// Bytes of shared memory whose size is known, in whole words.
pub(super) fn shared_size(shared: &crate::Shared) -> Option<u64> {
    shared.count.map(|count| count.saturating_mul(shared.element.bytes()).div_ceil(4).saturating_mul(4))
}

fn module(draft: &Draft, writer: &Writer<'_>, layout: &Layout) -> String {
    let (major, minor) = writer.version;
    let mut text = format!(".version {major}.{minor}\n.target {}\n.address_size 64\n\n", writer.target);
    for shared in draft.shared.iter().filter(|shared| shared.count.is_none()) {
        text += &format!(".extern .shared .align 16 .b8 shared_{}[];\n\n", shared.name);
    }
    let parameter = |(at, parameter): (usize, &super::layout::Parameter)| {
        format!("    .param .{} parameter_{at}", parameter_type(parameter.bytes))
    };
    let parameters: Vec<String> = layout.parameters.iter().enumerate().map(parameter).collect();
    let [x, y, z] = draft.block;
    text += &format!(
        ".visible .entry {}(\n{}\n)\n.reqntid {x}, {y}, {z}\n{{\n",
        draft.name,
        parameters.join(",\n")
    );
    text += &writer.declarations();
    for shared in &draft.shared {
        if let Some(bytes) = shared_size(shared) {
            text += &format!("    .shared .align 16 .b8 shared_{}[{bytes}];\n", shared.name);
        }
    }
    text += "\n";
    text += &writer.prologue;
    text += &writer.body;
    text += "}\n";
    text += &writer.lines.as_ref().map_or_else(String::new, Lines::files);
    text
}

/// What a program needs besides its parameters.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    trap: bool,
    grid_barrier: bool,
}

impl Uses {
    fn of(block: &Block) -> Self {
        block.iter().fold(Self::default(), |uses, statement| match &statement.kind {
            StatementKind::Trap(_) => Self { trap: true, ..uses },
            StatementKind::Barrier(BarrierScope::Grid) => Self { grid_barrier: true, ..uses },
            StatementKind::If { then, otherwise, .. } => uses.and(Self::of(then)).and(Self::of(otherwise)),
            StatementKind::For { body, .. } => uses.and(Self::of(body)),
            StatementKind::While { condition, body, .. } => uses.and(Self::of(condition)).and(Self::of(body)),
            _ => uses,
        })
    }

    fn and(self, other: Self) -> Self {
        Self { trap: self.trap || other.trap, grid_barrier: self.grid_barrier || other.grid_barrier }
    }
}

impl Writer<'_> {
    /// The number of a parameter.
    pub(super) fn parameter(&self, kind: ParameterKind) -> usize {
        self.layout.parameters.iter().position(|parameter| parameter.kind == kind).unwrap_or(0)
    }

    /// Computes a value.
    pub(super) fn define(&mut self, value: crate::ValueId, op: &Op) {
        self.proof.define(value, op);
        let register = self.loaded(value).unwrap_or_else(|| self.operation(op));
        if let Some(slot) = self.values.get_mut(value.index()) {
            *slot = Some(register);
        }
    }
}
