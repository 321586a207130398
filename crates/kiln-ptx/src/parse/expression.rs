//! Parses and computes constant expressions.
//!
//! PTX computes constants in 64 bits with the rules of C: an operation is unsigned when one side is, a comparison
//! gives a signed 0 or 1, floats are doubles.

use super::Parser;
use super::cursor::invalid;
use super::lexer::TokenKind;
use super::literal;
use crate::error::ParseError;
use crate::operand::Immediate;
use crate::position::Position;
use crate::scalar::{ScalarKind, ScalarType};

impl<'a> Parser<'a> {
    /// A constant.
    pub(super) fn constant(&mut self) -> Result<Immediate, ParseError> {
        self.ternary(0)
    }

    /// A constant that fits `i64` or whose 64 bits are taken as such.
    pub(super) fn integer(&mut self) -> Result<i64, ParseError> {
        let position = self.position();
        match self.constant()? {
            Immediate::Signed(x) => Ok(x),
            Immediate::Unsigned(x) => Ok(x as i64),
            _ => Err(invalid(position, "expected an integer, found a float")),
        }
    }

    /// A constant from 0 to `u32::MAX`; `what` names it in the error.
    pub(super) fn small(&mut self, what: &'static str) -> Result<u32, ParseError> {
        let position = self.position();
        let value = self.integer()?;
        u32::try_from(value)
            .map_err(|_| invalid(position, format!("{what} lies between 0 and {}, unlike {value}", u32::MAX)))
    }

    /// A literal that must be a plain number, as in `.loc 1 20 3`.
    pub(super) fn plain_number(&mut self, what: &'static str) -> Result<u64, ParseError> {
        let literal =
            if self.token.kind == TokenKind::Number { literal::read(self.token.text) } else { None };
        if let Some(number @ (Immediate::Signed(_) | Immediate::Unsigned(_))) = literal {
            self.bump()?;
            return Ok(number.bits());
        }
        Err(self.unexpected(what))
    }

    fn ternary(&mut self, depth: u32) -> Result<Immediate, ParseError> {
        self.check_depth(depth)?;
        let condition = self.binary(0, depth)?;
        if !self.accept(b'?')? {
            return Ok(condition);
        }
        let yes = self.ternary(depth + 1)?;
        self.expect(b':')?;
        let no = self.ternary(depth + 1)?;
        Ok(if is_true(condition) { yes } else { no })
    }

    /// Operators that bind at least as tight as `floor`.
    fn binary(&mut self, floor: u8, depth: u32) -> Result<Immediate, ParseError> {
        let mut left = self.unary(depth)?;
        loop {
            let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength > floor) else {
                return Ok(left);
            };
            let position = self.bump()?.position;
            let right = self.binary(strength, depth)?;
            left = apply(operator, left, right, position)?;
        }
    }

    fn operator(&self) -> Option<(&'a str, u8)> {
        let strength = match self.token.kind {
            TokenKind::Punct(_) | TokenKind::Double => match self.token.text {
                "||" => 1,
                "&&" => 2,
                "|" => 3,
                "^" => 4,
                "&" => 5,
                "==" | "!=" => 6,
                "<" | ">" | "<=" | ">=" => 7,
                "<<" | ">>" => 8,
                "+" | "-" => 9,
                "*" | "/" | "%" => 10,
                _ => return None,
            },
            _ => return None,
        };
        Some((self.token.text, strength))
    }

    fn unary(&mut self, depth: u32) -> Result<Immediate, ParseError> {
        self.check_depth(depth)?;
        match self.token.kind {
            TokenKind::Number => {
                let Some(value) = literal::read(self.token.text) else {
                    return Err(self.unexpected("a number that fits 64 bits"));
                };
                self.bump()?;
                Ok(value)
            }
            TokenKind::Word if self.token.text == "WARP_SZ" => {
                self.bump()?;
                Ok(Immediate::Signed(32))
            }
            TokenKind::Punct(b'(') => {
                self.bump()?;
                if let Some(ty) = self.directive().and_then(ScalarType::from_keyword) {
                    self.bump()?;
                    self.expect(b')')?;
                    return Ok(cast(ty, self.unary(depth + 1)?));
                }
                let value = self.ternary(depth + 1)?;
                self.expect(b')')?;
                Ok(value)
            }
            TokenKind::Punct(sign @ (b'-' | b'+' | b'~' | b'!')) => {
                let position = self.bump()?.position;
                let value = self.unary(depth + 1)?;
                negate(sign, value, position)
            }
            _ => Err(self.unexpected("a constant")),
        }
    }
}

fn is_true(value: Immediate) -> bool {
    match value {
        Immediate::F32(bits) => f32::from_bits(bits) != 0.0,
        Immediate::F64(bits) => f64::from_bits(bits) != 0.0,
        other => other.bits() != 0,
    }
}

fn as_double(value: Immediate) -> f64 {
    match value {
        Immediate::Signed(x) => x as f64,
        Immediate::Unsigned(x) => x as f64,
        Immediate::F32(bits) => f64::from(f32::from_bits(bits)),
        Immediate::F64(bits) => f64::from_bits(bits),
    }
}

fn cast(ty: ScalarType, value: Immediate) -> Immediate {
    let float = matches!(value, Immediate::F32(_) | Immediate::F64(_));
    match ty.kind() {
        ScalarKind::Float => Immediate::F64(as_double(value).to_bits()),
        ScalarKind::Signed if float => Immediate::Signed(as_double(value) as i64),
        ScalarKind::Unsigned if float => Immediate::Unsigned(as_double(value) as u64),
        ScalarKind::Unsigned => Immediate::Unsigned(value.bits()),
        _ => Immediate::Signed(value.bits() as i64),
    }
}

fn negate(sign: u8, value: Immediate, position: Position) -> Result<Immediate, ParseError> {
    Ok(match (sign, value) {
        (b'!', _) => Immediate::Signed(i64::from(!is_true(value))),
        (b'+', _) => value,
        (b'-', Immediate::Signed(x)) => Immediate::Signed(x.wrapping_neg()),
        // The magnitude of the smallest i64 does not fit i64, but its negation does.
        (b'-', Immediate::Unsigned(x)) if x == 1 << 63 => Immediate::Signed(i64::MIN),
        (b'-', Immediate::Unsigned(x)) => Immediate::Unsigned(x.wrapping_neg()),
        (b'-', Immediate::F32(bits)) => Immediate::F32(bits ^ (1 << 31)),
        (b'-', Immediate::F64(bits)) => Immediate::F64(bits ^ (1 << 63)),
        (_, Immediate::Signed(x)) => Immediate::Signed(!x),
        (_, Immediate::Unsigned(x)) => Immediate::Unsigned(!x),
        _ => return Err(invalid(position, "`~` needs an integer")),
    })
}

fn apply(operator: &str, a: Immediate, b: Immediate, position: Position) -> Result<Immediate, ParseError> {
    match operator {
        "&&" => return Ok(Immediate::Signed(i64::from(is_true(a) && is_true(b)))),
        "||" => return Ok(Immediate::Signed(i64::from(is_true(a) || is_true(b)))),
        _ => {}
    }
    let result = match (a, b) {
        (Immediate::Signed(a), Immediate::Signed(b)) => apply_signed(operator, a, b),
        (Immediate::F32(_) | Immediate::F64(_), _) | (_, Immediate::F32(_) | Immediate::F64(_)) => {
            apply_float(operator, as_double(a), as_double(b))
        }
        _ => apply_unsigned(operator, a.bits(), b.bits()),
    };
    result.ok_or_else(|| invalid(position, format!("`{operator}` cannot be computed for these constants")))
}

fn apply_signed(operator: &str, a: i64, b: i64) -> Option<Immediate> {
    let truth = |t: bool| Some(Immediate::Signed(i64::from(t)));
    let number = |x: i64| Some(Immediate::Signed(x));
    match operator {
        "<<" => number(u32::try_from(b).ok().and_then(|n| a.checked_shl(n)).unwrap_or(0)),
        ">>" => number(a >> u32::try_from(b).unwrap_or(63).min(63)),
        "+" => number(a.wrapping_add(b)),
        "-" => number(a.wrapping_sub(b)),
        "*" => number(a.wrapping_mul(b)),
        "/" => a.checked_div(b).and_then(number),
        "%" => a.checked_rem(b).and_then(number),
        "|" => number(a | b),
        "^" => number(a ^ b),
        "&" => number(a & b),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        _ => None,
    }
}

fn apply_unsigned(operator: &str, a: u64, b: u64) -> Option<Immediate> {
    let truth = |t: bool| Some(Immediate::Signed(i64::from(t)));
    let number = |x: u64| Some(Immediate::Unsigned(x));
    let shift = |x: fn(u64, u32) -> Option<u64>| u32::try_from(b).ok().and_then(|n| x(a, n)).unwrap_or(0);
    match operator {
        "<<" => number(shift(u64::checked_shl)),
        ">>" => number(shift(u64::checked_shr)),
        "+" => number(a.wrapping_add(b)),
        "-" => number(a.wrapping_sub(b)),
        "*" => number(a.wrapping_mul(b)),
        "/" => a.checked_div(b).and_then(number),
        "%" => a.checked_rem(b).and_then(number),
        "|" => number(a | b),
        "^" => number(a ^ b),
        "&" => number(a & b),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        _ => None,
    }
}

fn apply_float(operator: &str, a: f64, b: f64) -> Option<Immediate> {
    let truth = |t: bool| Some(Immediate::Signed(i64::from(t)));
    let number = |x: f64| Some(Immediate::F64(x.to_bits()));
    match operator {
        "+" => number(a + b),
        "-" => number(a - b),
        "*" => number(a * b),
        "/" => number(a / b),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        ">" => truth(a > b),
        "<=" => truth(a <= b),
        ">=" => truth(a >= b),
        _ => None,
    }
}
