//! Integer division. The assembler makes a long sequence of every division, also by a number that is written down, so
//! those become a multiplication and shifts here.

use super::integer::{bits_name, name};
use super::register::{Class, Register};
use super::writer::Writer;
use crate::operation::{BinaryOp, Operand};
use crate::scalar_type::Type;

/// How to divide by a number without dividing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reciprocal {
    divisor: i128,
    steps: Steps,
}

/// The quotient of `n`, of a positive divisor; for a negative one its sign is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    /// `n >> shift`, for a signed `n` after what makes it cut toward zero was added.
    Shift(u32),
    /// The upper half of `n * factor`, plus `n` if the factor has a bit more than the registers, then `>> shift`.
    Multiply { factor: u128, with_n: bool, shift: u32 },
}

impl Reciprocal {
    /// For a type and a divisor other than 0, 1 and -1; `None` where the plain instruction has to do.
    fn new(ty: Type, divisor: i128) -> Option<Self> {
        let width = if ty.bits() == 64 { 64 } else { 32 };
        Self::of_width(width, ty.is_signed(), divisor)
    }

    /// The same for registers of any width up to 64.
    fn of_width(width: u32, signed: bool, divisor: i128) -> Option<Self> {
        let size = divisor.unsigned_abs();
        let limit = 1u128 << (width - 1);
        if size < 2 || size >= limit {
            return None;
        }
        if size.is_power_of_two() {
            return Some(Self { divisor, steps: Steps::Shift(size.trailing_zeros()) });
        }
        // The factor is 2^p / size rounded up, with the least p for which the error stays below one for every n.
        let full = 1u128 << width;
        let numbers = if signed { limit } else { full };
        // The largest n with the largest remainder: the error grows with both.
        let worst = numbers - 1 - numbers % size;
        let power = (width..2 * width).find(|power| {
            let power = 1u128 << power;
            let excess = size - power % size;
            worst.checked_mul(excess).is_some_and(|error| error < power)
        })?;
        let exact = 1u128 << power;
        let factor = (exact + size - exact % size) / size;
        let with_n = factor >= if signed { limit } else { full };
        let factor = if with_n && !signed { factor - full } else { factor };
        Some(Self { divisor, steps: Steps::Multiply { factor, with_n, shift: power - width } })
    }
}

impl Writer<'_> {
    /// The quotient or the rest of a division by a known number.
    fn divide_by(&mut self, op: BinaryOp, ty: Type, n: &str, reciprocal: Reciprocal) -> Register {
        let (class, name) = (Class::of(ty), name(ty));
        let divisor = reciprocal.divisor.to_string();
        if let (Steps::Shift(shift), BinaryOp::Rem, false) = (reciprocal.steps, op, ty.is_signed()) {
            let mask = ((1u64 << shift) - 1).to_string();
            return self.compute(class, &format!("and.{}", bits_name(ty)), &[n, &mask]);
        }
        let mut quotient = match reciprocal.steps {
            Steps::Shift(shift) if !ty.is_signed() => {
                self.compute(class, &format!("shr.{name}"), &[n, &shift.to_string()])
            }
            Steps::Shift(shift) => self.shift_toward_zero(ty, n, shift),
            Steps::Multiply { factor, with_n, shift } => {
                self.multiply_and_shift(ty, n, factor, with_n, shift)
            }
        };
        if reciprocal.divisor < 0 {
            quotient = self.compute(class, &format!("neg.{name}"), &[&quotient.to_string()]);
        }
        if op == BinaryOp::Div {
            return quotient;
        }
        let product =
            self.compute(class, &format!("mul.lo.{name}"), &[&quotient.to_string(), &divisor]).to_string();
        self.compute(class, &format!("sub.{name}"), &[n, &product])
    }

    fn shift_toward_zero(&mut self, ty: Type, n: &str, shift: u32) -> Register {
        let (class, name, width) = (Class::of(ty), name(ty), if ty.bits() == 64 { 64 } else { 32 });
        let unsigned = if width == 64 { "u64" } else { "u32" };
        let sign = self.compute(class, &format!("shr.{name}"), &[n, &(width - 1).to_string()]).to_string();
        // 2^shift - 1 for a negative number, otherwise 0.
        let add = self
            .compute(class, &format!("shr.{unsigned}"), &[&sign, &(width - shift).to_string()])
            .to_string();
        let sum = self.compute(class, &format!("add.{name}"), &[n, &add]).to_string();
        self.compute(class, &format!("shr.{name}"), &[&sum, &shift.to_string()])
    }

    fn multiply_and_shift(&mut self, ty: Type, n: &str, factor: u128, with_n: bool, shift: u32) -> Register {
        let (class, name, width) = (Class::of(ty), name(ty), if ty.bits() == 64 { 64 } else { 32 });
        let factor = match (ty.is_signed(), width) {
            (true, 64) => (factor as i64).to_string(),
            (true, _) => (factor as u32 as i32).to_string(),
            _ => factor.to_string(),
        };
        let upper = self.compute(class, &format!("mul.hi.{name}"), &[n, &factor]).to_string();
        let right = |writer: &mut Self, value: &str, by: u32| {
            writer.compute(class, &format!("shr.{name}"), &[value, &by.to_string()])
        };
        if ty.is_signed() {
            let sum = match with_n {
                true => self.compute(class, &format!("add.{name}"), &[&upper, n]).to_string(),
                false => upper,
            };
            let below = right(self, &sum, shift).to_string();
            // Rounded down so far; of a negative number that is one too few.
            let unsigned = if width == 64 { "u64" } else { "u32" };
            let one =
                self.compute(class, &format!("shr.{unsigned}"), &[n, &(width - 1).to_string()]).to_string();
            return self.compute(class, &format!("add.{name}"), &[&below, &one]);
        }
        if !with_n {
            return right(self, &upper, shift);
        }
        // (n + upper) >> shift, without the carry that the sum has.
        let rest = self.compute(class, &format!("sub.{name}"), &[n, &upper]).to_string();
        let half = right(self, &rest, 1).to_string();
        let sum = self.compute(class, &format!("add.{name}"), &[&half, &upper]).to_string();
        right(self, &sum, shift - 1)
    }

    /// Division by something that cannot go wrong, and the answer for what could.
    pub(super) fn divide(&mut self, op: BinaryOp, ty: Type, a: Operand, b: Operand) -> Register {
        let (class, name, bits) = (Class::of(ty), name(ty), bits_name(ty));
        let instruction = if op == BinaryOp::Div { format!("div.{name}") } else { format!("rem.{name}") };
        let (a, divisor) = (self.operand(a), self.operand(b));
        if let Operand::Literal(literal) = b
            && ![0, -1].contains(&literal.as_integer())
        {
            return match Reciprocal::new(ty, literal.as_integer()) {
                Some(reciprocal) => self.divide_by(op, ty, &a, reciprocal),
                None => self.compute(class, &instruction, &[&a, &divisor]),
            };
        }
        let select = format!("selp.{bits}");
        let zero = self.compute(Class::Pred, &format!("setp.eq.{name}"), &[&divisor, "0"]).to_string();
        let mut safe = self.compute(class, &select, &["1", &divisor, &zero]).to_string();
        if op == BinaryOp::Div && !ty.is_signed() {
            let quotient = self.compute(class, &instruction, &[&a, &safe]).to_string();
            return self.compute(class, &select, &["0", &quotient, &zero]);
        }
        if !ty.is_signed() {
            let rest = self.compute(class, &instruction, &[&a, &safe]).to_string();
            return self.compute(class, &select, &[&a, &rest, &zero]);
        }
        // By 1 the quotient is `a` and the rest 0, which is what -1 needs up to the sign.
        let minus = self.compute(Class::Pred, &format!("setp.eq.{name}"), &[&divisor, "-1"]).to_string();
        safe = self.compute(class, &select, &["1", &safe, &minus]).to_string();
        let result = self.compute(class, &instruction, &[&a, &safe]).to_string();
        if op == BinaryOp::Rem {
            return self.compute(class, &select, &[&a, &result, &zero]);
        }
        let negative = self.compute(class, &format!("neg.{name}"), &[&a]);
        let negative = self.filled(ty, negative).to_string();
        let result = self.compute(class, &select, &[&negative, &result, &minus]).to_string();
        self.compute(class, &select, &["0", &result, &zero])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the instructions compute in registers of a few bits.
    fn quotient(reciprocal: Reciprocal, width: u32, signed: bool, n: i128) -> i128 {
        let wrap = |value: i128| match signed {
            true => (value << (128 - width)) >> (128 - width),
            false => value & ((1 << width) - 1),
        };
        let quotient = match reciprocal.steps {
            Steps::Shift(shift) => (n + if n < 0 { (1 << shift) - 1 } else { 0 }) >> shift,
            Steps::Multiply { factor, with_n, shift } => {
                let upper = (n * wrap(factor as i128)) >> width;
                match (signed, with_n) {
                    (true, _) => (wrap(upper + if with_n { n } else { 0 }) >> shift) + i128::from(n < 0),
                    (false, false) => upper >> shift,
                    (false, true) => (((n - upper) >> 1) + upper) >> (shift - 1),
                }
            }
        };
        if reciprocal.divisor < 0 { -quotient } else { quotient }
    }

    #[test]
    fn every_number_of_eight_and_of_eleven_bits_is_divided_by_every_other() {
        for width in [8, 11] {
            for signed in [false, true] {
                let half = 1i128 << (width - 1);
                let range = if signed { -half..half } else { 0..2 * half };
                let mut found = 0;
                for divisor in range.clone() {
                    let Some(reciprocal) = Reciprocal::of_width(width, signed, divisor) else { continue };
                    found += 1;
                    for n in range.clone() {
                        let computed = quotient(reciprocal, width, signed, n);
                        assert_eq!(computed, n / divisor, "{n} / {divisor}, {width} bits, {reciprocal:?}");
                    }
                }
                // All but 0, 1, -1 and those with the highest bit.
                assert_eq!(found, if signed { 2 * half - 4 } else { half - 2 });
            }
        }
    }
}
