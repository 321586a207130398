//! A program into a module of PTX.

use super::line_info::LineInfo;
use super::parameter_layout::{EntryParameterKind, ParameterLayout, parameter_type};
use super::target::PtxTarget;
use super::writer::Writer;
use crate::operation::{Op, Operand};
use crate::program::{Draft, Program};
use crate::source_location::SourceLocation;
use crate::statement::{BarrierScope, Block, Statement, StatementKind};
use crate::value_range::Ranges;

/// PTX of a program, with what a launch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitted {
    /// The module. It has one entry, which has the name of the program.
    pub text: String,
    /// The parameters of the entry.
    pub layout: ParameterLayout,
    /// Whether the launch must be cooperative.
    pub cooperative: bool,
    /// Bytes of shared memory the module declares.
    pub shared_bytes: u64,
    /// The architecture it is for.
    pub target: PtxTarget,
}

impl Program {
    /// The program as PTX for an architecture, of the lowest version that has everything it uses.
    ///
    /// ```
    /// use kiln_ir::{Program, PtxTarget};
    ///
    /// let program = Program::parse("kernel fill(out x: u32[], v: u32) block(64) { x[global.x] = v; }")?;
    /// let emitted = program.emit(PtxTarget::new(70).unwrap());
    /// assert!(emitted.text.starts_with(".version 6.0\n.target sm_70\n"));
    /// assert_eq!(emitted.layout.bytes, 8 + 8 + 4);
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn emit(&self, target: PtxTarget) -> Emitted {
        self.emitted(target, None)
    }

    /// As [`emit`](Self::emit), with `.loc` directives that name the source line of each statement. Statements of a
    /// text are said to be in the file `NAME.kir`, where `NAME` is that of the program.
    ///
    /// ```
    /// use kiln_ir::{Program, PtxTarget};
    ///
    /// let program = Program::parse("kernel fill(out x: u32[], v: u32) block(64) {\n    x[global.x] = v;\n}")?;
    /// let text = program.emit_with_lines(PtxTarget::new(70).unwrap()).text;
    /// assert!(text.contains(".file 1 \"fill.kir\"") && text.contains(".loc 1 2 5"));
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn emit_with_lines(&self, target: PtxTarget) -> Emitted {
        self.emitted(target, Some(LineInfo::new(&self.name)))
    }

    fn emitted(&self, target: PtxTarget, lines: Option<LineInfo>) -> Emitted {
        let program = self.expanded().simplified();
        let uses = Uses::of(&program);
        let can_trap = !uses.traps.is_empty();
        let layout = ParameterLayout::new(&program, can_trap || uses.grid_barrier, uses.grid_barrier);
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
        Uses::of(self).grid_barrier
    }

    /// Whether it can trap.
    pub fn can_trap(&self) -> bool {
        !self.traps().is_empty()
    }

    /// The statements that can trap: each `trap`, and each `for` whose step may be below 1.
    pub fn traps(&self) -> Vec<SourceLocation> {
        Uses::of(self).traps
    }
}

/// Bytes of shared memory whose size is known, in whole words.
pub(super) fn shared_size(shared: &crate::Shared) -> Option<u64> {
    shared.count.map(|count| count.saturating_mul(shared.element.bytes()).div_ceil(4).saturating_mul(4))
}

fn module(draft: &Draft, writer: &Writer<'_>, layout: &ParameterLayout) -> String {
    let (major, minor) = writer.version;
    let mut text = format!(".version {major}.{minor}\n.target {}\n.address_size 64\n\n", writer.target);
    for shared in draft.shared.iter().filter(|shared| shared.count.is_none()) {
        text += &format!(".extern .shared .align 16 .b8 shared_{}[];\n\n", shared.name);
    }
    let parameter = |(at, parameter): (usize, &super::parameter_layout::EntryParameter)| {
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
    text += &writer.lines.as_ref().map_or_else(String::new, LineInfo::files);
    text
}

/// What a program needs besides its parameters.
#[derive(Clone, Debug, Default)]
struct Uses {
    traps: Vec<SourceLocation>,
    grid_barrier: bool,
}

impl Uses {
    fn of(draft: &Draft) -> Self {
        let (mut uses, ranges) = (Self::default(), Ranges::new(draft));
        uses.add(&draft.body, &|step| ranges.is_positive(draft, step));
        uses
    }

    fn add(&mut self, block: &Block, is_positive: &dyn Fn(Operand) -> bool) {
        for Statement { kind, location } in block {
            match kind {
                StatementKind::Trap(_) => self.traps.push(*location),
                StatementKind::Barrier(BarrierScope::Grid) => self.grid_barrier = true,
                StatementKind::If { then, otherwise, .. } => {
                    self.add(then, is_positive);
                    self.add(otherwise, is_positive);
                }
                StatementKind::For { step, body, .. } => {
                    self.traps.extend((!is_positive(*step)).then_some(*location));
                    self.add(body, is_positive);
                }
                StatementKind::While { condition, body, .. } => {
                    self.add(condition, is_positive);
                    self.add(body, is_positive);
                }
                _ => {}
            }
        }
    }
}

impl Writer<'_> {
    /// The number of a parameter.
    pub(super) fn parameter(&self, kind: EntryParameterKind) -> usize {
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
