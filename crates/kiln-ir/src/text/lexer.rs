//! Text into tokens.

use super::error::TextError;
use super::reserved_words::is_keyword;
use crate::source_location::SourceLocation;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word: a name or a keyword.
    Word,
    /// Digits, with whatever letters follow.
    Number,
    /// `%3` or `$3`: a value or a variable without a name.
    Nameless,
    /// `f32#7fc00000`: a float by its bits.
    Bits,
    /// An operator or bracket.
    Sign,
    /// The end of the text.
    End,
}

/// A token and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    pub(super) text: &'t str,
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Token<'_> {
    pub(super) fn location(self) -> SourceLocation {
        SourceLocation::Text { line: self.line, column: self.column }
    }

    pub(super) fn error(self, what: impl Into<String>) -> TextError {
        TextError::Syntax { line: self.line, column: self.column, what: what.into() }
    }
}

/// Signs of more than one character, the longer ones first.
const LONG_SIGNS: [&str; 7] = ["<<", ">>", "<=", ">=", "==", "!=", ".."];
const SIGNS: &str = "(){}[]:;,=+-*/%&|^!<>.";

/// All tokens of a text, with an end behind them.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, TextError> {
    let mut lexer = Lexer { rest: text, line: 1, column: 1, operand_line: None };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_space();
        let token = lexer.next()?;
        lexer.operand_line = ends_operand(token).then_some(lexer.line);
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

struct Lexer<'t> {
    rest: &'t str,
    line: u32,
    column: u32,
    /// The line of the token before, if an operand may end with it.
    operand_line: Option<u32>,
}

/// Whether an operand may end with a token: what stands behind it on the line is an operator.
fn ends_operand(token: Token<'_>) -> bool {
    match token.kind {
        Kind::Word => !is_keyword(token.text),
        Kind::Number | Kind::Nameless | Kind::Bits => true,
        Kind::Sign => matches!(token.text, ")" | "]"),
        Kind::End => false,
    }
}

impl<'t> Lexer<'t> {
    fn skip_space(&mut self) {
        loop {
            let space = self.rest.len() - self.rest.trim_start().len();
            let comment = match self.rest.starts_with("//") {
                true => self.rest.find('\n').unwrap_or(self.rest.len()),
                false => 0,
            };
            match space.max(comment) {
                0 => return,
                bytes => drop(self.take(bytes)),
            }
        }
    }

    /// The next bytes, counted into line and column.
    fn take(&mut self, bytes: usize) -> &'t str {
        let (text, rest) = self.rest.split_at(bytes);
        for c in text.chars() {
            match c {
                '\n' => (self.line, self.column) = (self.line + 1, 1),
                _ => self.column += 1,
            }
        }
        self.rest = rest;
        text
    }

    fn next(&mut self) -> Result<Token<'t>, TextError> {
        let (line, column) = (self.line, self.column);
        let Some(first) = self.rest.chars().next() else {
            return Ok(Token { kind: Kind::End, text: "", line, column });
        };
        let (kind, bytes) = match first {
            'a'..='z' | 'A'..='Z' | '_' => self.word(),
            '0'..='9' => (Kind::Number, number_length(self.rest)),
            // `a %3` is a remainder and not a value behind another.
            '%' if self.operand_line == Some(line) => (Kind::Sign, 1),
            '%' | '$' if digits(&self.rest[1..]) > 0 => (Kind::Nameless, 1 + digits(&self.rest[1..])),
            _ => {
                let long = LONG_SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
                match long {
                    Some(sign) => (Kind::Sign, sign.len()),
                    None if SIGNS.contains(first) => (Kind::Sign, 1),
                    None => {
                        let what = format!("unexpected character `{}`", first.escape_default());
                        return Err(TextError::Syntax { line, column, what });
                    }
                }
            }
        };
        Ok(Token { kind, text: self.take(bytes), line, column })
    }

    fn word(&self) -> (Kind, usize) {
        let length = letters(self.rest);
        let after = &self.rest[length..];
        match after.strip_prefix('#').map(letters) {
            Some(bits) if bits > 0 => (Kind::Bits, length + 1 + bits),
            _ => (Kind::Word, length),
        }
    }
}

/// Bytes of letters, digits and `_` at the start.
fn letters(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len())
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Bytes of a number: digits, a fraction, an exponent, a type.
fn number_length(text: &str) -> usize {
    if text.starts_with("0x") {
        return letters(text);
    }
    let mut length = digits(text);
    let fraction = text[length..].strip_prefix('.').map_or(0, digits);
    if fraction > 0 {
        length += 1 + fraction;
    }
    if let Some(exponent) = text[length..].strip_prefix('e') {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let count = digits(&exponent[sign..]);
        if count > 0 {
            length += 1 + sign + count;
        }
    }
    length + letters(&text[length..])
}
