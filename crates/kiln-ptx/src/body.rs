//! The body of a function: a flat list of instructions and what they refer to.
//!
//! Blocks, declarations and source lines do not change what an instruction does once names are resolved, so they
//! stand beside the list, in [`Mark`]s, and only the printer needs them.

use crate::call::{Call, CallId, CallTargets, Prototype, PrototypeId, TargetsId};
use crate::instruction::Instruction;
use crate::name::Name;
use crate::operand::{Elements, PtxOperand, WordId};
use crate::position::Origin;
use crate::source_line::{SourceLine, SourcePlace};
use crate::variable::VariableId;

/// The number of a label within its function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LabelId(pub u32);

/// The number of a branch table within its function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId(pub u32);

/// The instructions of a function and all they refer to.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Body {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) operands: Vec<PtxOperand>,
    pub(crate) elements: Vec<PtxOperand>,
    pub(crate) labels: Vec<Label>,
    pub(crate) tables: Vec<BranchTable>,
    pub(crate) calls: Vec<Call>,
    pub(crate) prototypes: Vec<Prototype>,
    pub(crate) targets: Vec<CallTargets>,
    pub(crate) words: Vec<Name>,
    pub(crate) lines: Vec<LineStart>,
    pub(crate) marks: Vec<Mark>,
}

/// A label and the instruction behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its name; labels in different blocks may share one.
    pub name: Name,
    /// Index of the instruction it stands before; the number of instructions when it stands at the end, where the
    /// function returns.
    pub target: u32,
    /// Where it stood.
    pub origin: Origin,
}

/// `name: .branchtargets a, b, c;`
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTable {
    /// Its label.
    pub name: Name,
    /// Where each index goes.
    pub targets: Vec<LabelId>,
    /// Where it stood.
    pub origin: Origin,
}

/// A source line and the first instruction it covers.
#[derive(Clone, Debug, PartialEq)]
pub struct LineStart {
    /// Index of the first instruction; the line holds until the next entry.
    pub first: u32,
    /// The line.
    pub line: SourceLine,
}

/// Something that stands between instructions.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Index of the instruction it stands before.
    pub before: u32,
    /// What stands there.
    pub directive: Directive,
}

/// What a [`Mark`] holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Directive {
    /// `{`.
    Open,
    /// `}`.
    Close,
    /// A label.
    Label(LabelId),
    /// A `.reg` declaration: the index in [`Registers::groups`](crate::Registers::groups).
    Registers(u32),
    /// A variable declaration.
    Variable(VariableId),
    /// `.loc`: the index in [`Body::lines`].
    Line(u32),
    /// `.branchtargets`.
    Table(TableId),
    /// `.callprototype`.
    Prototype(PrototypeId),
    /// `.calltargets`.
    Targets(TargetsId),
    /// `.pragma` with its strings.
    Pragma(Vec<Name>),
}

impl Body {
    /// All instructions in order; control falls from each to the next.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// The operands of an instruction of this body, destination first.
    pub fn operands(&self, instruction: &Instruction) -> &[PtxOperand] {
        run(&self.operands, instruction.first_operand, instruction.operand_count)
    }

    /// The operands inside a vector or bracket.
    pub fn elements(&self, elements: Elements) -> &[PtxOperand] {
        run(&self.elements, elements.first, elements.count)
    }

    /// All labels.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// The index of the instruction a label stands before; past the last instruction the function returns.
    pub fn target(&self, label: LabelId) -> usize {
        self.labels.get(label.0 as usize).map_or(self.instructions.len(), |l| l.target as usize)
    }

    /// The table of a `brx.idx`.
    pub fn table(&self, table: TableId) -> Option<&BranchTable> {
        self.tables.get(table.0 as usize)
    }

    /// The operands of a call.
    pub fn call(&self, call: CallId) -> Option<&Call> {
        self.calls.get(call.0 as usize)
    }

    /// The prototype an indirect call names.
    pub fn prototype(&self, prototype: PrototypeId) -> Option<&Prototype> {
        self.prototypes.get(prototype.0 as usize)
    }

    /// The targets an indirect call names.
    pub fn call_targets(&self, targets: TargetsId) -> Option<&CallTargets> {
        self.targets.get(targets.0 as usize)
    }

    /// A bare word of an unknown instruction.
    pub fn word(&self, word: WordId) -> &str {
        self.words.get(word.0 as usize).map_or("", |w| w)
    }

    /// The source line of an instruction by its index, when the module carries debug lines.
    pub fn source_line(&self, instruction: usize) -> Option<&SourceLine> {
        let after = self.lines.partition_point(|start| start.first as usize <= instruction);
        self.lines.get(after.checked_sub(1)?).map(|start| &start.line)
    }

    /// Where the code of an instruction was inlined: the innermost call of it in the file that the outermost function of the chain of calls is in. Of code that
    /// headers inline into each other this is the line of the program.
    pub fn inlined_at(&self, instruction: usize) -> Option<SourcePlace> {
        const DEEPEST: usize = 64;
        let end = self.lines.partition_point(|start| start.first as usize <= instruction);
        let lines = self.lines.get(..end)?;
        let mut chain = vec![lines.last()?.line.inlined.as_ref()?.at];
        // The compiler names each call of the chain before the code that was inlined there.
        while let Some(place) = chain.last().copied().filter(|_| chain.len() < DEEPEST) {
            let caller = lines.iter().rev().map(|start| &start.line).find(|line| line.place == place);
            match caller.and_then(|line| line.inlined.as_ref()) {
                Some(inlined) => chain.push(inlined.at),
                None => break,
            }
        }
        let file = chain.last()?.file;
        chain.into_iter().find(|place| place.file == file)
    }

    /// All source lines by their first instruction.
    pub fn lines(&self) -> &[LineStart] {
        &self.lines
    }

    /// What stands between the instructions, in text order.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }
}

fn run(all: &[PtxOperand], first: u32, count: u32) -> &[PtxOperand] {
    all.get(first as usize..).and_then(|rest| rest.get(..count as usize)).unwrap_or(&[])
}
