//! Statements, read into a kernel that is being built.

use std::collections::HashMap;

use super::error::TextError;
use super::lexer::{Kind, Token, tokens};
use super::number_literal;
use super::reserved_words::is_name;
use crate::builder::KernelBuilder;
use crate::declaration::{ScalarId, TileId, ValueId, VariableId};
use crate::operation::{MemoryOperand, MemoryScope, Operand, TileOp};
use crate::program::{Draft, Program};
use crate::scalar_type::Type;
use crate::source_location::SourceLocation;
use crate::statement::{BarrierScope, Block, StatementKind};
use crate::verify::{MAX_DEPTH, VerifyError, VerifyReason};

impl Program {
    /// Reads the text form and verifies what it says.
    ///
    /// # Errors
    /// Where it cannot be read, or makes no sense.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let draft = Draft::parse(text)?;
        Self::new(draft).map_err(|error| match (error.location, tokens(text).ok().as_deref()) {
            // Declarations have no location; they follow the first word.
            (SourceLocation::Unknown, Some([first, ..])) => {
                VerifyError { location: first.location(), ..error }.into()
            }
            _ => error.into(),
        })
    }
}

impl Draft {
    /// Reads the text form.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let tokens = tokens(text)?;
        let kernel = KernelBuilder::new("");
        let mut parser = Parser { tokens: &tokens, at: 0, kernel: &kernel, names: HashMap::new(), depth: 0 };
        parser.header()?;
        parser.sign("{")?;
        parser.shared()?;
        parser.tiles()?;
        parser.statements()?;
        let end = parser.token();
        if end.kind != Kind::End {
            return Err(end.error("the kernel ended here; a text holds one"));
        }
        Ok(kernel.into_draft())
    }
}

/// What a name refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Name {
    Operand(Operand, Type),
    Variable(VariableId, Type),
    Scalar(ScalarId, Type),
    MemoryOperand(MemoryOperand),
    Tile(TileId, Type),
}

pub(super) struct Parser<'t> {
    pub(super) tokens: &'t [Token<'t>],
    pub(super) at: usize,
    pub(super) kernel: &'t KernelBuilder,
    pub(super) names: HashMap<&'t str, Name>,
    /// Blocks and parentheses that are open.
    pub(super) depth: usize,
}

impl<'t> Parser<'t> {
    /// The next token; behind the last one always the end.
    pub(super) fn token(&self) -> Token<'t> {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.min(last)).copied().unwrap_or(Token {
            kind: Kind::End,
            text: "",
            line: 1,
            column: 1,
        })
    }

    pub(super) fn advance(&mut self) -> Token<'t> {
        let token = self.token();
        self.at += 1;
        token
    }

    pub(super) fn take_sign(&mut self, sign: &str) -> bool {
        let found = self.token().kind == Kind::Sign && self.token().text == sign;
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.token().kind == Kind::Word && self.token().text == word;
        self.at += usize::from(found);
        found
    }

    pub(super) fn sign(&mut self, sign: &str) -> Result<(), TextError> {
        if self.take_sign(sign) { Ok(()) } else { Err(self.unexpected(&format!("`{sign}`"))) }
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), TextError> {
        if self.take_word(word) { Ok(()) } else { Err(self.unexpected(&format!("`{word}`"))) }
    }

    pub(super) fn any_word(&mut self, what: &str) -> Result<Token<'t>, TextError> {
        match self.token().kind {
            Kind::Word => Ok(self.advance()),
            _ => Err(self.unexpected(what)),
        }
    }

    /// A word that can be a name.
    pub(super) fn declared_name(&mut self, what: &str) -> Result<Token<'t>, TextError> {
        let token = self.any_word(what)?;
        match is_name(token.text) {
            true => Ok(token),
            false => Err(token.error(VerifyReason::Name { name: token.text.to_owned() }.to_string())),
        }
    }

    /// A count without a type.
    pub(super) fn count(&mut self) -> Result<u64, TextError> {
        let token = self.token();
        if token.kind == Kind::Number
            && let Ok((number, None)) = number_literal::read(token.text)
            && let Some(count) = number.count()
        {
            self.advance();
            return Ok(count);
        }
        Err(self.unexpected("a count"))
    }

    pub(super) fn unexpected(&self, expected: &str) -> TextError {
        let token = self.token();
        match token.kind {
            Kind::End => token.error(format!("expected {expected}, but the text ends")),
            _ => token.error(format!("expected {expected}, not `{}`", token.text)),
        }
    }

    /// One level deeper, at most so many.
    pub(super) fn deeper(&mut self) -> Result<(), TextError> {
        self.depth += 1;
        if self.depth > 2 * MAX_DEPTH {
            return Err(self.token().error("nested too deep"));
        }
        Ok(())
    }

    fn push(&self, kind: StatementKind, location: SourceLocation) {
        self.kernel.push_at(kind, location);
    }

    /// Statements up to the end of their block. Names of the block go out of scope.
    pub(super) fn statements(&mut self) -> Result<(), TextError> {
        self.deeper()?;
        let names = self.names.clone();
        while !self.take_sign("}") {
            self.statement()?;
        }
        self.names = names;
        self.depth -= 1;
        Ok(())
    }

    /// A block in braces.
    fn block(&mut self) -> Result<Block, TextError> {
        self.sign("{")?;
        let kernel = self.kernel;
        let (block, result) = kernel.collect(|| self.statements());
        result.map(|()| block)
    }

    fn statement(&mut self) -> Result<(), TextError> {
        let token = self.token();
        let location = token.location();
        match (token.kind, token.text) {
            (Kind::Word, "let") => self.let_statement(),
            (Kind::Word, "var") => self.var_statement(location),
            (Kind::Word, "if") => self.if_statement(),
            (Kind::Word, "for") => self.for_statement(location),
            (Kind::Word, "while") => self.while_statement(location),
            (Kind::Word, "break" | "continue" | "return" | "barrier" | "fence" | "trap") => {
                self.simple(location)
            }
            (Kind::Word, word) if TileOp::WORDS.contains(&word) => self.tile_statement(location),
            (Kind::Word | Kind::Nameless, _) => self.assignment(location),
            _ => Err(self.unexpected("a statement")),
        }
    }

    /// Statements of one word, some with an argument.
    fn simple(&mut self, location: SourceLocation) -> Result<(), TextError> {
        let kind = match self.advance().text {
            "break" => StatementKind::Break,
            "continue" => StatementKind::Continue,
            "return" => StatementKind::Return,
            "barrier" => {
                let token = self.any_word("`block` or `grid`")?;
                let scope = BarrierScope::from_word(token.text);
                StatementKind::Barrier(scope.ok_or_else(|| token.error("expected `block` or `grid`"))?)
            }
            "fence" => {
                let token = self.any_word("`block`, `device` or `system`")?;
                let scope = MemoryScope::from_word(token.text);
                StatementKind::Fence(
                    scope.ok_or_else(|| token.error("expected `block`, `device` or `system`"))?,
                )
            }
            _ => {
                self.sign("(")?;
                let code = self.typed(Type::U32)?;
                self.sign(")")?;
                StatementKind::Trap(code)
            }
        };
        self.sign(";")?;
        self.push(kind, location);
        Ok(())
    }

    /// `let name: type = expression;`. The type may be left out.
    fn let_statement(&mut self) -> Result<(), TextError> {
        self.advance();
        let name = self.new_name('%')?;
        let ty = self.take_sign(":").then(|| self.ty()).transpose()?;
        self.sign("=")?;
        let before = self.value_count();
        let (operand, found) = self.maybe_typed(ty)?;
        self.sign(";")?;
        // A value that was computed here gets the name; for an older value it is an alias.
        if let Operand::Value(ValueId(id)) = operand
            && id >= before
            && name.kind == Kind::Word
        {
            self.kernel.edit(|draft| {
                if let Some(value) = draft.values.get_mut(id as usize) {
                    value.name = Some(name.text.to_owned());
                }
            });
        }
        self.names.insert(name.text, Name::Operand(operand, found));
        Ok(())
    }

    fn value_count(&self) -> u32 {
        let mut count = 0;
        self.kernel.edit(|draft| count = draft.values.len() as u32);
        count
    }

    /// `var name: type = expression;`. The type or the expression may be left out.
    fn var_statement(&mut self, location: SourceLocation) -> Result<(), TextError> {
        self.advance();
        let name = self.new_name('$')?;
        let mut ty = self.take_sign(":").then(|| self.ty()).transpose()?;
        let initial = self.take_sign("=").then(|| self.maybe_typed(ty)).transpose()?;
        ty = ty.or(initial.map(|(_, ty)| ty));
        let Some(ty) = ty else { return Err(self.unexpected("`:` and a type, or `=` and a value")) };
        self.sign(";")?;
        let variable = self.kernel.add_variable(ty);
        if name.kind == Kind::Word {
            self.kernel.edit(|draft| {
                if let Some(declared) = draft.variables.get_mut(variable.index()) {
                    declared.name = Some(name.text.to_owned());
                }
            });
        }
        self.push(
            StatementKind::Declare { variable, initial: initial.map(|(operand, _)| operand) },
            location,
        );
        self.names.insert(name.text, Name::Variable(variable, ty));
        Ok(())
    }

    /// A new name, or a number behind a mark.
    fn new_name(&mut self, mark: char) -> Result<Token<'t>, TextError> {
        let token = self.token();
        match token.kind {
            Kind::Word => Ok(self.advance()),
            Kind::Nameless if token.text.starts_with(mark) => Ok(self.advance()),
            _ => Err(self.unexpected("a name")),
        }
    }

    fn if_statement(&mut self) -> Result<(), TextError> {
        let location = self.advance().location();
        let condition = self.typed(Type::Bool)?;
        let then = self.block()?;
        let otherwise = match self.take_word("else") {
            true if self.token().text == "if" => {
                self.deeper()?;
                let kernel = self.kernel;
                let (block, result) = kernel.collect(|| self.if_statement());
                self.depth -= 1;
                result.map(|()| block)?
            }
            true => self.block()?,
            false => Block::new(),
        };
        self.push(StatementKind::If { condition, then, otherwise }, location);
        Ok(())
    }

    /// `for i in start..end step expression { ... }`.
    fn for_statement(&mut self, location: SourceLocation) -> Result<(), TextError> {
        self.advance();
        let name = self.new_name('%')?;
        self.word("in")?;
        let ([start, end, step], ty) = self.bounds()?;
        let value = self.kernel.add_value(ty);
        if name.kind == Kind::Word {
            self.kernel.edit(|draft| {
                if let Some(declared) = draft.values.get_mut(value.index()) {
                    declared.name = Some(name.text.to_owned());
                }
            });
        }
        let before = self.names.insert(name.text, Name::Operand(Operand::Value(value), ty));
        let body = self.block()?;
        match before {
            Some(before) => self.names.insert(name.text, before),
            None => self.names.remove(name.text),
        };
        self.push(StatementKind::For { value, start, end, step, body }, location);
        Ok(())
    }

    /// `while condition { ... }`; a condition that needs statements is written in braces with them.
    fn while_statement(&mut self, location: SourceLocation) -> Result<(), TextError> {
        self.advance();
        let kernel = self.kernel;
        let names = self.names.clone();
        let (condition, test) = kernel.collect(|| {
            if !self.take_sign("{") {
                return self.typed(Type::Bool);
            }
            self.deeper()?;
            while !self.take_sign("=") {
                self.statement()?;
            }
            let test = self.typed(Type::Bool)?;
            self.depth -= 1;
            self.sign("}")?;
            Ok(test)
        });
        self.names = names;
        let test = test?;
        let body = self.block()?;
        self.push(StatementKind::While { condition, test, body }, location);
        Ok(())
    }

    /// `name = expression;`, `name[index] = expression;`, or an expression for its effect.
    fn assignment(&mut self, location: SourceLocation) -> Result<(), TextError> {
        let start = self.at;
        let token = self.advance();
        match self.names.get(token.text).copied() {
            Some(Name::Variable(variable, ty)) if self.take_sign("=") => {
                let value = self.typed(ty)?;
                self.sign(";")?;
                self.push(StatementKind::Assign { variable, value }, location);
                Ok(())
            }
            Some(Name::MemoryOperand(memory)) if self.take_sign("[") => {
                let index = self.index()?;
                self.sign("=")?;
                let value = self.typed(self.element(memory))?;
                self.sign(";")?;
                self.push(StatementKind::Store { memory, index, value }, location);
                Ok(())
            }
            _ => {
                self.at = start;
                self.expression()?;
                self.sign(";")
            }
        }
    }
}
