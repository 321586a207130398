//! Statements: the inside of a function.

use super::Parser;
use super::cursor::{invalid, unknown_instruction};
use super::label::Labels;
use super::lexer::{Token, TokenKind};
use super::operand_rules::{Code, broken_rule};
use super::scope::Binding;
use crate::body::{Body, Directive, LineStart, Mark};
use crate::error::ParseError;
use crate::function::PtxFunctionId;
use crate::instruction::{Guard, Instruction};
use crate::instruction_form::{Form, FormId};
use crate::opcode::Opcode;
use crate::operand::PtxOperand;
use crate::position::Origin;
use crate::register::Registers;
use crate::source_line::{Inlined, SourceLine, SourcePlace};

/// A body while it is read.
pub(super) struct Builder<'a, 'r> {
    pub(super) owner: PtxFunctionId,
    pub(super) body: Body,
    pub(super) registers: &'r mut Registers,
    pub(super) labels: Labels<'a>,
    /// Operands of lists that are still open, innermost last.
    pub(super) open_lists: Vec<PtxOperand>,
}

impl Builder<'_, '_> {
    pub(super) fn mark(&mut self, directive: Directive) {
        let before = self.body.instructions.len() as u32;
        self.body.marks.push(Mark { before, directive });
    }
}

impl<'a> Parser<'a> {
    /// The body of a function, braces included.
    pub(super) fn body(
        &mut self,
        owner: PtxFunctionId,
        registers: &mut Registers,
    ) -> Result<Body, ParseError> {
        let body = Body::default();
        let mut builder = Builder { owner, body, registers, labels: Labels::new(), open_lists: Vec::new() };
        self.expect(b'{')?;
        self.scope.open();
        let mut depth = 0;
        loop {
            match self.token.kind {
                TokenKind::Punct(b'{') => {
                    depth += 1;
                    self.check_depth(depth)?;
                    self.bump()?;
                    self.scope.open();
                    builder.labels.open();
                    builder.mark(Directive::Open);
                }
                TokenKind::Punct(b'}') => {
                    self.bump()?;
                    self.scope.close();
                    if depth == 0 {
                        break;
                    }
                    depth -= 1;
                    builder.labels.close();
                    builder.mark(Directive::Close);
                }
                _ => self.statement(&mut builder)?,
            }
        }
        builder.resolve_labels()?;
        Ok(builder.body)
    }

    fn statement(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        match self.token.kind {
            TokenKind::Word => {
                let word = self.bump()?;
                if self.accept(b':')? {
                    self.label(builder, &word)
                } else {
                    self.instruction(builder, word, None)
                }
            }
            TokenKind::Punct(b'@') => {
                self.bump()?;
                let guard = self.guard()?;
                let word = self.expect_word("an instruction")?;
                self.instruction(builder, word, Some(guard))
            }
            TokenKind::DotWord => self.body_directive(builder),
            TokenKind::Punct(b';') => self.bump().map(drop),
            _ => Err(self.unexpected("an instruction, a label, a directive or `}`")),
        }
    }

    fn body_directive(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        match self.directive() {
            Some("reg") => {
                self.bump()?;
                let groups = self.register_statement(builder.registers)?;
                groups.for_each(|group| builder.mark(Directive::Registers(group)));
            }
            Some("loc") => self.source_line(builder)?,
            Some("file") => self.file()?,
            Some("pragma") => {
                self.bump()?;
                let texts = self.texts("the text of a pragma")?;
                builder.mark(Directive::Pragma(texts));
            }
            _ => {
                let linkage = self.linkage()?;
                let declared = self.variables(linkage, Some(builder.owner))?;
                declared.into_iter().for_each(|id| builder.mark(Directive::Variable(id)));
            }
        }
        Ok(())
    }

    /// What stands behind `@`.
    fn guard(&mut self) -> Result<Guard, ParseError> {
        let negated = self.accept(b'!')?;
        let name = self.expect_word("a predicate")?;
        match self.scope.find(name.text) {
            Some(Binding::Register(register)) => Ok(Guard { register, negated }),
            Some(_) => Err(invalid(name.position, format!("`{}` is no predicate", name.text))),
            None => Err(super::cursor::unknown_name(&name, "predicate")),
        }
    }

    /// An instruction behind its first word.
    fn instruction(
        &mut self,
        builder: &mut Builder<'a, '_>,
        word: Token<'a>,
        guard: Option<Guard>,
    ) -> Result<(), ParseError> {
        let form = self.instruction_form(&word)?;
        let opcode = self.forms.get(form.index()).map_or(Opcode::Unknown, Form::opcode);
        if opcode == Opcode::Unknown && self.knows_all_instructions && !is_internal(word.text) {
            let text = self.forms.get(form.index()).map_or(word.text, Form::text);
            return Err(unknown_instruction(word.position, text));
        }
        let first_operand = builder.body.operands.len() as u32;
        match opcode {
            Opcode::Call => self.call(builder)?,
            Opcode::Bra => self.branch_target(builder)?,
            Opcode::Brx => self.table_branch(builder)?,
            _ => self.operands(builder, opcode)?,
        }
        if !self.accept(b';')? {
            return Err(self.unexpected("`,` or `;`"));
        }
        let operands = builder.body.operands.get(first_operand as usize..).unwrap_or_default();
        let elements = &builder.body.elements;
        let code = Code { registers: builder.registers, variables: &self.variables, elements };
        let broken = self.forms.get(form.index()).and_then(|form| broken_rule(form, operands, &code));
        let broken_form = || self.broken_forms.get(form.index()).and_then(Clone::clone);
        if let Some(broken) = broken.or_else(broken_form) {
            return Err(invalid(word.position, broken));
        }
        let operand_count = operands.len() as u32;
        let origin = Origin::new(word.position);
        builder.body.instructions.push(Instruction {
            form,
            guard,
            is_inline_assembly: word.is_inline_assembly,
            origin,
            first_operand,
            operand_count,
        });
        Ok(())
    }

    /// The form of an instruction; modifiers set apart by blanks are joined to it.
    fn instruction_form(&mut self, word: &Token<'a>) -> Result<FormId, ParseError> {
        if self.token.kind != TokenKind::DotWord {
            return Ok(self.form(word.text));
        }
        let mut text = word.text.to_owned();
        while self.token.kind == TokenKind::DotWord {
            text.push_str(self.bump()?.text);
        }
        Ok(self.form(&text))
    }

    /// `.loc 1 20 3, function_name LABEL+0, inlined_at 1 10 5`
    fn source_line(&mut self, builder: &mut Builder<'a, '_>) -> Result<(), ParseError> {
        self.bump()?;
        let place = self.source_place()?;
        let mut inlined = None;
        if self.accept(b',')? {
            if !self.is_word("function_name") {
                return Err(self.unexpected("`function_name`"));
            }
            self.bump()?;
            let function = self.expect_word("the label of a function's name")?.text;
            let function = self.name(function);
            let mut function_offset = 0;
            if self.accept(b'+')? {
                function_offset = self.plain_number("an offset")?;
            }
            self.expect(b',')?;
            if !self.is_word("inlined_at") {
                return Err(self.unexpected("`inlined_at`"));
            }
            self.bump()?;
            inlined = Some(Inlined { function, function_offset, at: self.source_place()? });
        }
        let first = builder.body.instructions.len() as u32;
        builder.mark(Directive::Line(builder.body.lines.len() as u32));
        builder.body.lines.push(LineStart { first, line: SourceLine { place, inlined } });
        Ok(())
    }

    fn source_place(&mut self) -> Result<SourcePlace, ParseError> {
        let [mut file, mut line, mut column] = [0u32; 3];
        let parts = [(&mut file, "the number of a file"), (&mut line, "a line"), (&mut column, "a column")];
        for (part, what) in parts {
            *part = u32::try_from(self.plain_number(what)?).unwrap_or(u32::MAX);
        }
        Ok(SourcePlace { file, line, column })
    }
}

/// Whether the word may be an instruction that only NVIDIA's tools use among themselves: those begin with an underscore.
fn is_internal(word: &str) -> bool {
    word.starts_with('_')
}
