//! Labels: the only names that may be used before they are declared.
//!
//! A use is noted with the block it stands in; when the function ends, each is looked up in its block and those
//! around it. The depth of blocks is limited, so the whole is linear.

use std::collections::HashMap;

use super::Parser;
use super::cursor::{declared_twice, unknown_name};
use super::lexer::{Token, TokenKind};
use super::scope::Binding;
use super::statement::Builder;
use crate::body::{BranchTable, Directive, Label, LabelId, TableId};
use crate::call::{CallTargets, FormalShape, Indirect, Prototype, PrototypeId, TargetsId};
use crate::error::ParseError;
use crate::opcode::Opcode;
use crate::operand::PtxOperand;
use crate::position::Origin;

/// What a label stands before.
#[derive(Clone, Copy, Debug)]
enum Labelled {
    Code(LabelId),
    Table(TableId),
    Prototype(PrototypeId),
    Targets(TargetsId),
}

/// Where a label is used.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// The operand with this index is a branch target.
    Branch(usize),
    /// The operand with this index is a branch table.
    Table(usize),
    /// An item of a branch table.
    TableItem(usize, usize),
    /// The prototype or targets of the call with this index.
    Call(usize),
}

/// The labels of a function while it is read.
pub(super) struct Labels<'a> {
    declared: HashMap<(u32, &'a str), Labelled>,
    uses: Vec<(Token<'a>, u32, Use)>,
    /// The block around each block; block 0 is the function.
    around: Vec<u32>,
    current: u32,
}

impl<'a> Labels<'a> {
    pub(super) fn new() -> Self {
        Self { declared: HashMap::new(), uses: Vec::new(), around: vec![0], current: 0 }
    }

    pub(super) fn open(&mut self) {
        self.around.push(self.current);
        self.current = self.around.len() as u32 - 1;
    }

    pub(super) fn close(&mut self) {
        self.current = self.around_block(self.current);
    }

    fn around_block(&self, block: u32) -> u32 {
        self.around.get(block as usize).copied().unwrap_or(0)
    }

    fn add_use(&mut self, name: Token<'a>, place: Use) {
        self.uses.push((name, self.current, place));
    }

    /// The innermost declaration seen from `block`.
    fn find(&self, name: &'a str, mut block: u32) -> Option<Labelled> {
        loop {
            if let Some(labelled) = self.declared.get(&(block, name)) {
                return Some(*labelled);
            }
            if block == 0 {
                return None;
            }
            block = self.around_block(block);
        }
    }
}

impl<'a> Builder<'a, '_> {
    /// Notes that the call with index `call` names its prototype or targets.
    pub(super) fn use_prototype(&mut self, name: Token<'a>, call: usize) {
        self.labels.add_use(name, Use::Call(call));
    }

    /// Fills in every use of a label.
    pub(super) fn resolve_labels(&mut self) -> Result<(), ParseError> {
        for (name, block, place) in std::mem::take(&mut self.labels.uses) {
            let labelled = self.labels.find(name.text, block);
            match (place, labelled) {
                (Use::Branch(index), Some(Labelled::Code(label))) => {
                    set(&mut self.body.operands, index, PtxOperand::Label(label));
                }
                (Use::Table(index), Some(Labelled::Table(table))) => {
                    set(&mut self.body.operands, index, PtxOperand::Table(table));
                }
                (Use::TableItem(table, item), Some(Labelled::Code(label))) => {
                    if let Some(table) = self.body.tables.get_mut(table) {
                        set(&mut table.targets, item, label);
                    }
                }
                (Use::Call(index), Some(Labelled::Prototype(id))) => {
                    if let Some(call) = self.body.calls.get_mut(index) {
                        call.indirect = Some(Indirect::Prototype(id));
                    }
                }
                (Use::Call(index), Some(Labelled::Targets(id))) => {
                    if let Some(call) = self.body.calls.get_mut(index) {
                        call.indirect = Some(Indirect::Targets(id));
                    }
                }
                (Use::Branch(_) | Use::TableItem(..), _) => return Err(unknown_name(&name, "label")),
                (Use::Table(_), _) => return Err(unknown_name(&name, "branch table")),
                (Use::Call(_), _) => return Err(unknown_name(&name, "call prototype")),
            }
        }
        Ok(())
    }

    fn declare_label(&mut self, name: &Token<'a>, labelled: Labelled) -> Result<(), ParseError> {
        match self.labels.declared.insert((self.labels.current, name.text), labelled) {
            None => Ok(()),
            Some(_) => Err(declared_twice(name)),
        }
    }
}

impl<'a> Parser<'a> {
    /// What stands behind `name:`.
    pub(super) fn label(
        &mut self,
        builder: &mut Builder<'a, '_>,
        name: &Token<'a>,
    ) -> Result<(), ParseError> {
        match self.directive() {
            Some("branchtargets") => self.branch_table(builder, name),
            Some("callprototype") => self.prototype(builder, name),
            Some("calltargets") => self.call_targets(builder, name),
            _ => {
                let id = LabelId(builder.body.labels.len() as u32);
                builder.declare_label(name, Labelled::Code(id))?;
                let target = builder.body.instructions.len() as u32;
                let origin = Origin::new(name.position);
                builder.body.labels.push(Label { name: self.name(name.text), target, origin });
                builder.mark(Directive::Label(id));
                Ok(())
            }
        }
    }

    /// The target of `bra`.
    pub(super) fn branch_target(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        let name = self.expect_word("a label")?;
        builder.labels.add_use(name, Use::Branch(builder.body.operands.len()));
        builder.body.operands.push(PtxOperand::Sink);
        Ok(())
    }

    /// The index and table of `brx.idx`.
    pub(super) fn table_branch(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        let index = self.operand(builder, Opcode::Brx, 0)?;
        builder.body.operands.push(index);
        self.expect(b',')?;
        let name = self.expect_word("the label of a branch table")?;
        builder.labels.add_use(name, Use::Table(builder.body.operands.len()));
        builder.body.operands.push(PtxOperand::Sink);
        Ok(())
    }

    fn branch_table(&mut self, builder: &mut Builder<'a, '_>, name: &Token<'a>) -> Result<(), ParseError> {
        self.bump()?;
        let table = builder.body.tables.len();
        let id = TableId(table as u32);
        builder.declare_label(name, Labelled::Table(id))?;
        let mut targets = Vec::new();
        loop {
            let label = self.expect_word("a label")?;
            builder.labels.add_use(label, Use::TableItem(table, targets.len()));
            targets.push(LabelId(u32::MAX));
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        let origin = Origin::new(name.position);
        builder.body.tables.push(BranchTable { name: self.name(name.text), targets, origin });
        builder.mark(Directive::Table(id));
        Ok(())
    }

    fn call_targets(&mut self, builder: &mut Builder<'a, '_>, name: &Token<'a>) -> Result<(), ParseError> {
        self.bump()?;
        let id = TargetsId(builder.body.targets.len() as u32);
        builder.declare_label(name, Labelled::Targets(id))?;
        let mut functions = Vec::new();
        loop {
            let function = self.expect_word("the name of a function")?;
            functions.push(self.declared_function(&function)?);
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b';')?;
        let origin = Origin::new(name.position);
        builder.body.targets.push(CallTargets { name: self.name(name.text), functions, origin });
        builder.mark(Directive::Targets(id));
        Ok(())
    }

    /// `.callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _) .noreturn;`
    fn prototype(&mut self, builder: &mut Builder<'a, '_>, name: &Token<'a>) -> Result<(), ParseError> {
        self.bump()?;
        let id = PrototypeId(builder.body.prototypes.len() as u32);
        builder.declare_label(name, Labelled::Prototype(id))?;
        let returns = if self.is_punct(b'(') { self.formal_shapes()? } else { Vec::new() };
        self.expect_word("`_`")?;
        let parameters = if self.is_punct(b'(') { self.formal_shapes()? } else { Vec::new() };
        let (mut noreturn, mut other) = (false, Vec::new());
        while let Some(word) = self.directive() {
            self.bump()?;
            match word {
                "noreturn" => noreturn = true,
                _ => other.push(self.other_directive(word)?),
            }
        }
        self.expect(b';')?;
        let origin = Origin::new(name.position);
        let name = self.name(name.text);
        builder.body.prototypes.push(Prototype { name, returns, parameters, noreturn, other, origin });
        builder.mark(Directive::Prototype(id));
        Ok(())
    }

    fn formal_shapes(&mut self) -> Result<Vec<FormalShape>, ParseError> {
        self.expect(b'(')?;
        let mut shapes = Vec::new();
        while !self.is_punct(b')') {
            let register = self.is_directive("reg");
            if !register && !self.is_directive("param") {
                return Err(self.unexpected("`.param` or `.reg`"));
            }
            self.bump()?;
            let qualifiers = self.qualifiers()?;
            if self.token.kind == TokenKind::Word {
                self.bump()?;
            }
            shapes.push(FormalShape { register, shape: self.shape(&qualifiers)? });
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(b')')?;
        Ok(shapes)
    }

    /// The register a name means, if it means one.
    pub(super) fn find_register(&self, name: &str) -> Option<crate::register::RegisterId> {
        match self.scope.find(name) {
            Some(Binding::Register(register)) => Some(register),
            _ => None,
        }
    }
}

fn set<T>(items: &mut [T], index: usize, value: T) {
    if let Some(item) = items.get_mut(index) {
        *item = value;
    }
}
