//! Text to tokens, without copying.
//!
//! A token is a kind and a range of the text. A dotted word such as `ld.global.nc.f32` or `%tid.x` is one token,
//! because that is the unit the parser looks up; a word that starts with a dot (`.reg`) ends at the next dot.
//! Every byte is looked at a bounded number of times, so lexing is linear in the text.

use crate::error::{Cause, ParseError};
use crate::position::Position;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or an instruction: `%r1`, `ld.global.f32`, `_`.
    Word,
    /// A directive or lone modifier: `.reg`.
    DotWord,
    /// A literal that starts with a digit.
    Number,
    /// A string with its quotes.
    Text,
    /// Punctuation of one byte.
    Punct(u8),
    /// Punctuation of two bytes: `<<`, `>>`, `<=`, `>=`, `==`, `!=`, `&&`, `||`.
    Double,
    /// The end of the text.
    End,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: TokenKind,
    pub(crate) text: &'a str,
    pub(crate) position: Position,
    /// Whether it stands between the comments that compilers put around inline assembly.
    pub(crate) is_inline_assembly: bool,
}

/// The rest of the text to read.
pub(crate) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    is_inline_assembly: bool,
}

const WORD: u8 = 1;
const DIGIT: u8 = 2;
const BLANK: u8 = 4;

/// Which bytes continue a word, are digits, are blanks.
static CLASS: [u8; 256] = {
    let mut class = [0u8; 256];
    let mut b = 0usize;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphabetic() || byte == b'_' || byte == b'$' {
            class[b] = WORD;
        } else if byte.is_ascii_digit() {
            class[b] = WORD | DIGIT;
        } else if byte == b' ' || byte == b'\t' || byte == b'\r' || byte == 0x0b || byte == 0x0c {
            class[b] = BLANK;
        }
        b += 1;
    }
    class
};

fn is(byte: u8, class: u8) -> bool {
    CLASS[byte as usize] & class != 0
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        // Compilers hand out C strings; a NUL ends the text.
        let text = text.split('\0').next().unwrap_or(text);
        Self { text, at: 0, line: 1, line_start: 0, is_inline_assembly: false }
    }

    /// The next token. Past the end it is `End` for ever.
    pub(crate) fn next(&mut self) -> Result<Token<'a>, ParseError> {
        self.skip_blank()?;
        let start = self.at;
        let position = self.position();
        let byte = self.byte(0);
        let kind = match byte {
            0 => TokenKind::End,
            b'%' if is(self.byte(1), WORD) && !is(self.byte(1), DIGIT) => self.word(),
            b'0'..=b'9' => self.number(),
            _ if is(byte, WORD) => self.word(),
            b'.' if is(self.byte(1), WORD) => {
                self.at += 1;
                self.word_part();
                TokenKind::DotWord
            }
            b'"' => self.string(position)?,
            _ => self.punctuation(byte),
        };
        let text = self.text.get(start..self.at).unwrap_or("");
        Ok(Token { kind, text, position, is_inline_assembly: self.is_inline_assembly })
    }

    /// The text up to the next closing brace, which stays unread; for the content of debug sections.
    pub(crate) fn raw_until_brace(&mut self) -> &'a str {
        let start = self.at;
        let rest = self.text.get(start..).unwrap_or("");
        let length = rest.find('}').unwrap_or(rest.len());
        let content = rest.get(..length).unwrap_or("");
        for (i, byte) in content.bytes().enumerate() {
            if byte == b'\n' {
                self.newline(start + i);
            }
        }
        self.at = start + length;
        content
    }

    /// Whether a name is next: of a register or of anything else that is declared.
    pub(crate) fn is_before_name(&self) -> bool {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]).trim_ascii_start();
        rest.first().is_some_and(|byte| *byte == b'%' || is(*byte, WORD) && !is(*byte, DIGIT))
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn position(&self) -> Position {
        let column = u32::try_from(self.at - self.line_start).unwrap_or(u32::MAX).saturating_add(1);
        Position { line: self.line, column }
    }

    fn newline(&mut self, at: usize) {
        self.line = self.line.saturating_add(1);
        self.line_start = at + 1;
    }

    fn skip_blank(&mut self) -> Result<(), ParseError> {
        loop {
            match self.byte(0) {
                b'\n' => {
                    self.newline(self.at);
                    self.at += 1;
                }
                b'/' if self.byte(1) == b'/' => {
                    let rest = self.text.as_bytes().get(self.at..).unwrap_or(&[]);
                    let length = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                    match rest.get(2..length).unwrap_or(&[]).trim_ascii() {
                        b"begin inline asm" => self.is_inline_assembly = true,
                        b"end inline asm" => self.is_inline_assembly = false,
                        _ => {}
                    }
                    self.at += length;
                }
                b'/' if self.byte(1) == b'*' => self.skip_block_comment()?,
                byte if is(byte, BLANK) => self.at += 1,
                _ => return Ok(()),
            }
        }
    }

    fn skip_block_comment(&mut self) -> Result<(), ParseError> {
        let opened = self.position();
        self.at += 2;
        loop {
            match self.byte(0) {
                b'*' if self.byte(1) == b'/' => {
                    self.at += 2;
                    return Ok(());
                }
                b'\n' => self.newline(self.at),
                0 => return Err(unclosed(opened, "comment", "/*")),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// One name and its `::` parts, from the current byte.
    fn word_part(&mut self) {
        loop {
            if is(self.byte(0), WORD) {
                self.at += 1;
            } else if self.byte(0) == b':' && self.byte(1) == b':' && is(self.byte(2), WORD) {
                self.at += 2;
            } else {
                return;
            }
        }
    }

    fn word(&mut self) -> TokenKind {
        self.at += 1;
        self.word_part();
        while self.byte(0) == b'.' && is(self.byte(1), WORD) {
            self.at += 1;
            self.word_part();
        }
        TokenKind::Word
    }

    fn number(&mut self) -> TokenKind {
        let prefixed = self.byte(0) == b'0' && self.byte(1).is_ascii_alphabetic();
        loop {
            let byte = self.byte(0);
            let exponent = !prefixed && (byte == b'e' || byte == b'E');
            if exponent && matches!(self.byte(1), b'+' | b'-') && is(self.byte(2), DIGIT) {
                self.at += 2;
            } else if is(byte, WORD) || (byte == b'.' && !prefixed) {
                self.at += 1;
            } else {
                return TokenKind::Number;
            }
        }
    }

    fn string(&mut self, opened: Position) -> Result<TokenKind, ParseError> {
        self.at += 1;
        loop {
            match self.byte(0) {
                b'"' => {
                    self.at += 1;
                    return Ok(TokenKind::Text);
                }
                b'\\' if self.byte(1) != 0 && self.byte(1) != b'\n' => self.at += 1,
                0 | b'\n' => return Err(unclosed(opened, "string", "\"")),
                _ => {}
            }
            self.at += 1;
        }
    }

    fn punctuation(&mut self, byte: u8) -> TokenKind {
        let next = self.byte(1);
        let double = match byte {
            b'<' | b'>' => next == byte || next == b'=',
            b'=' | b'!' => next == b'=',
            b'&' | b'|' => next == byte,
            _ => false,
        };
        if double {
            self.at += 2;
            return TokenKind::Double;
        }
        // A byte beyond ASCII is never punctuation; take the whole character so that the range stays valid text.
        let rest = self.text.get(self.at..).unwrap_or("");
        self.at += rest.chars().next().map_or(1, char::len_utf8);
        TokenKind::Punct(byte)
    }
}

fn unclosed(position: Position, what: &'static str, opening: &str) -> ParseError {
    let expected = format!("the end of the {what} that begins here");
    ParseError::new(position, Cause::Unexpected { expected, found: format!("the end after `{opening}`") })
}
