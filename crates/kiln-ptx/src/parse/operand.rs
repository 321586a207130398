//! Parses operands of instructions.

use super::Parser;
use super::cursor::{invalid, unknown_name};
use super::lexer::{Token, TokenKind};
use super::scope::Binding;
use super::statement::Builder;
use crate::error::ParseError;
use crate::opcode::Opcode;
use crate::operand::{Address, AddressBase, Elements, Immediate, PtxOperand, WordId};
use crate::register::RegisterId;
use crate::selected_register::{SelectedRegister, Selector};
use crate::special_register::{Axis, SpecialRegister};

impl<'a> Parser<'a> {
    /// The operands of an ordinary instruction, none included.
    pub(super) fn operands(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
    ) -> Result<(), ParseError> {
        if self.is_punct(b';') {
            return Ok(());
        }
        if matches!(self.token.kind, TokenKind::Punct(b'}') | TokenKind::End) {
            return Err(self.unexpected("an operand or `;`"));
        }
        loop {
            let operand = self.operand(builder, opcode, 0)?;
            builder.body.operands.push(operand);
            if !self.accept(b',')? {
                return Ok(());
            }
        }
    }

    /// One operand.
    pub(super) fn operand(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
        depth: u32,
    ) -> Result<PtxOperand, ParseError> {
        self.check_depth(depth)?;
        match self.token.kind {
            TokenKind::Word => {
                let word = self.bump()?;
                self.named_operand(builder, opcode, word)
            }
            TokenKind::Punct(b'[') => self.bracket(builder, opcode, depth),
            TokenKind::Punct(b'{') => {
                self.bump()?;
                let elements = self.elements(builder, opcode, b'}', depth)?;
                Ok(PtxOperand::Vector(elements))
            }
            TokenKind::Punct(b'!') => {
                self.bump()?;
                let name = self.expect_word("a predicate")?;
                let register = self.find_register(name.text);
                register.map(PtxOperand::Not).ok_or_else(|| unknown_name(&name, "predicate"))
            }
            TokenKind::Punct(b'-') if opcode == Opcode::Vmad && self.lexer.is_before_name() => {
                self.bump()?;
                let name = self.expect_word("a register")?;
                let selected = self.selected_register(opcode, &name, true);
                selected.ok_or_else(|| unknown_name(&name, "register"))
            }
            TokenKind::Number | TokenKind::Punct(b'-' | b'+' | b'~' | b'(') => {
                self.constant().map(PtxOperand::Immediate)
            }
            _ => Err(self.unexpected("an operand")),
        }
    }

    fn named_operand(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
        word: Token<'a>,
    ) -> Result<PtxOperand, ParseError> {
        match self.scope.find(word.text) {
            Some(Binding::Register(register)) => {
                if self.accept(b'|')? {
                    let second = self.pair_register()?;
                    return Ok(PtxOperand::Pair(Some(register), second));
                }
                Ok(PtxOperand::Register(register))
            }
            Some(Binding::Variable(variable)) => Ok(PtxOperand::Variable(variable, self.addend()?)),
            None => self.other_word(builder, opcode, word),
        }
    }

    fn other_word(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
        word: Token<'a>,
    ) -> Result<PtxOperand, ParseError> {
        if word.text == "_" {
            if self.accept(b'|')? {
                let second = self.pair_register()?;
                return Ok(PtxOperand::Pair(None, second));
            }
            return Ok(PtxOperand::Sink);
        }
        if word.text == "WARP_SZ" {
            return Ok(PtxOperand::Immediate(Immediate::Signed(32)));
        }
        if let Some(special) = SpecialRegister::from_name(word.text) {
            return Ok(PtxOperand::Special(special));
        }
        if let Some((name, axis)) = word.text.rsplit_once('.')
            && let (Some(register), Some(axis)) = (self.find_register(name), Axis::from_letter(axis))
        {
            return Ok(PtxOperand::Element(register, axis));
        }
        if let Some(selected) = self.selected_register(opcode, &word, false) {
            return Ok(selected);
        }
        if let Some(function) = self.function_ids.get(word.text) {
            return Ok(PtxOperand::Function(*function));
        }
        if opcode == Opcode::Unknown {
            builder.body.words.push(self.name(word.text));
            return Ok(PtxOperand::Word(WordId(builder.body.words.len() as u32 - 1)));
        }
        Err(unknown_name(&word, "register or variable"))
    }

    /// A register of a video instruction, with a selector or without one.
    fn selected_register(&self, opcode: Opcode, word: &Token<'a>, negated: bool) -> Option<PtxOperand> {
        if !(Opcode::Vadd..=Opcode::Vset4).contains(&opcode) {
            return None;
        }
        let (name, selector) = match word.text.rsplit_once('.') {
            Some((name, selector)) => (name, Some(Selector::from_keyword(selector)?)),
            None => (word.text, None),
        };
        let register = self.find_register(name)?;
        Some(PtxOperand::Selected(SelectedRegister { register, selector, negated }))
    }

    /// The second register of `%r1|%p1`.
    fn pair_register(&mut self) -> Result<Option<RegisterId>, ParseError> {
        let name = self.expect_word("a register")?;
        if name.text == "_" {
            return Ok(None);
        }
        self.find_register(name.text).map(Some).ok_or_else(|| unknown_name(&name, "register"))
    }

    /// `[base+offset]`, or several operands in brackets.
    fn bracket(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
        depth: u32,
    ) -> Result<PtxOperand, ParseError> {
        let position = self.bump()?.position;
        let first = self.operand(builder, opcode, depth + 1)?;
        if self.is_punct(b',') {
            let mark = builder.open_lists.len();
            builder.open_lists.push(first);
            while self.accept(b',')? {
                let next = self.operand(builder, opcode, depth + 1)?;
                builder.open_lists.push(next);
            }
            self.expect(b']')?;
            return Ok(PtxOperand::Bracket(builder.close_list(mark)));
        }
        let address = match first {
            PtxOperand::Register(register) => {
                Address { base: AddressBase::Register(register), offset: self.addend()? }
            }
            PtxOperand::Variable(variable, offset) => {
                Address { base: AddressBase::Variable(variable), offset }
            }
            PtxOperand::Immediate(value) => {
                Address { base: AddressBase::Absolute, offset: value.bits() as i64 }
            }
            _ => return Err(invalid(position, "an address is a register, a variable or a number")),
        };
        self.expect(b']')?;
        Ok(PtxOperand::Address(address))
    }

    /// Operands up to `close`.
    fn elements(
        &mut self,
        builder: &mut Builder<'a, '_>,
        opcode: Opcode,
        close: u8,
        depth: u32,
    ) -> Result<Elements, ParseError> {
        let mark = builder.open_lists.len();
        while !self.is_punct(close) {
            let element = self.operand(builder, opcode, depth + 1)?;
            builder.open_lists.push(element);
            if !self.accept(b',')? {
                break;
            }
        }
        self.expect(close)?;
        Ok(builder.close_list(mark))
    }
}

impl Builder<'_, '_> {
    /// Moves the operands of the innermost open list to their final, contiguous place.
    fn close_list(&mut self, mark: usize) -> Elements {
        let first = self.body.elements.len() as u32;
        self.body.elements.extend(self.open_lists.drain(mark..));
        Elements { first, count: self.body.elements.len() as u32 - first }
    }
}
