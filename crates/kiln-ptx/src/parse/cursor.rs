//! A cursor over tokens: peek, accept, expect, report an error.

use super::lexer::{Token, TokenKind};
use super::{MAX_NESTING, Parser};
use crate::error::{Cause, ParseError};
use crate::module::PtxVersion;
use crate::name::Name;
use crate::opcode::Opcode;
use crate::position::Position;

/// The most characters of an offending token that an error quotes.
const MAX_QUOTE_CHARS: usize = 40;

impl<'a> Parser<'a> {
    /// Consumes the current token and returns it.
    pub(super) fn bump(&mut self) -> Result<Token<'a>, ParseError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    pub(super) fn position(&self) -> Position {
        self.token.position
    }

    pub(super) fn is_punct(&self, byte: u8) -> bool {
        self.token.kind == TokenKind::Punct(byte)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.token.kind == TokenKind::Word && self.token.text == word
    }

    /// Whether the current token is the directive `.word`.
    pub(super) fn is_directive(&self, word: &str) -> bool {
        self.directive() == Some(word)
    }

    /// The current directive without its dot.
    pub(super) fn directive(&self) -> Option<&'a str> {
        if self.token.kind == TokenKind::DotWord { self.token.text.get(1..) } else { None }
    }

    /// Consumes `byte` if it is next.
    pub(super) fn accept(&mut self, byte: u8) -> Result<bool, ParseError> {
        let there = self.is_punct(byte);
        if there {
            self.bump()?;
        }
        Ok(there)
    }

    /// Consumes the directive `.word` if it is next.
    pub(super) fn accept_directive(&mut self, word: &str) -> Result<bool, ParseError> {
        let there = self.is_directive(word);
        if there {
            self.bump()?;
        }
        Ok(there)
    }

    pub(super) fn expect(&mut self, byte: u8) -> Result<(), ParseError> {
        if self.accept(byte)? { Ok(()) } else { Err(self.unexpected(format!("`{}`", char::from(byte)))) }
    }

    pub(super) fn expect_directive(&mut self, word: &str) -> Result<(), ParseError> {
        if self.accept_directive(word)? { Ok(()) } else { Err(self.unexpected(format!("`.{word}`"))) }
    }

    /// A word that may serve as a name: `what` says which, for the error.
    pub(super) fn expect_word(&mut self, what: &str) -> Result<Token<'a>, ParseError> {
        if self.token.kind == TokenKind::Word { self.bump() } else { Err(self.unexpected(what)) }
    }

    /// A string, without its quotes; escapes stay as written.
    pub(super) fn expect_text(&mut self, what: &str) -> Result<Name, ParseError> {
        if self.token.kind != TokenKind::Text {
            return Err(self.unexpected(what));
        }
        let text = self.bump()?.text;
        Ok(self.name(text.get(1..text.len().saturating_sub(1)).unwrap_or("")))
    }

    /// Strings separated by commas, then a semicolon.
    pub(super) fn texts(&mut self, what: &str) -> Result<Vec<Name>, ParseError> {
        let mut texts = vec![self.expect_text(what)?];
        while self.accept(b',')? {
            texts.push(self.expect_text(what)?);
        }
        self.expect(b';')?;
        Ok(texts)
    }

    /// The error that the current token is not `expected`.
    pub(super) fn unexpected(&self, expected: impl Into<String>) -> ParseError {
        let found = match self.token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", quote(self.token.text)),
        };
        ParseError::new(self.position(), Cause::Unexpected { expected: expected.into(), found })
    }

    /// Checks a depth of nesting before going one deeper.
    pub(super) fn check_depth(&self, depth: u32) -> Result<(), ParseError> {
        if depth < MAX_NESTING {
            return Ok(());
        }
        Err(limit(self.position(), "the depth of nesting", u64::from(MAX_NESTING)))
    }
}

pub(super) fn invalid(position: Position, text: impl Into<String>) -> ParseError {
    ParseError::new(position, Cause::Invalid(text.into()))
}

pub(super) fn limit(position: Position, what: &'static str, limit: u64) -> ParseError {
    ParseError::new(position, Cause::Limit { what, limit })
}

pub(super) fn unknown_name(token: &Token<'_>, kind: &'static str) -> ParseError {
    ParseError::new(token.position, Cause::UnknownName { kind, name: quote(token.text) })
}

pub(super) fn declared_twice(token: &Token<'_>) -> ParseError {
    ParseError::new(token.position, Cause::DeclaredTwice { name: quote(token.text) })
}

/// The error that no instruction is called so, with the one that may be meant.
pub(super) fn unknown_instruction(position: Position, text: &str) -> ParseError {
    let (word, modifiers) = text.split_at(text.find('.').unwrap_or(text.len()));
    let hint = match Opcode::nearest(word) {
        Some(opcode) => format!("did you mean `{}`?", quote(&format!("{opcode}{modifiers}"))),
        None => {
            let PtxVersion { major, minor } = Opcode::KNOWN_VERSION;
            format!("PTX has none of that name up to version {major}.{minor}")
        }
    };
    ParseError::new(position, Cause::UnknownInstruction { name: quote(text), hint })
}

/// A token short enough for an error message.
fn quote(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or("")),
    }
}
