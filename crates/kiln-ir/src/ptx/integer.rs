//! Emits integer arithmetic.
//!
//! Those of 8 and 16 bits live in registers of 32, filled with their sign or with zeros. Most operations are done in
//! 32 bits and filled anew.

use super::register::{Class, Register};
use super::writer::Writer;
use crate::literal::Literal;
use crate::operation::{BinaryOp, Operand, UnaryOp};
use crate::scalar_type::Type;

/// The type of the instructions that work on registers of a type.
pub(super) fn name(ty: Type) -> &'static str {
    match (ty.bits() == 64, ty.is_signed()) {
        (false, false) => "u32",
        (false, true) => "s32",
        (true, false) => "u64",
        (true, true) => "s64",
    }
}

/// The same without a sign.
pub(super) fn bits_name(ty: Type) -> &'static str {
    if ty.bits() == 64 { "b64" } else { "b32" }
}

impl Writer<'_> {
    /// A register of 32 bits, of which those of a small type count, filled as the type wants it.
    pub(super) fn normalised(&mut self, ty: Type, a: Register) -> Register {
        let a = a.to_string();
        match ty {
            Type::U8 => self.compute(Class::B32, "and.b32", &[&a, "255"]),
            Type::U16 => self.compute(Class::B32, "and.b32", &[&a, "65535"]),
            Type::I8 => self.compute(Class::B32, "cvt.s32.s8", &[&a]),
            Type::I16 => self.compute(Class::B32, "cvt.s32.s16", &[&a]),
            _ => self.compute(Class::of(ty), &format!("mov.{}", bits_name(ty)), &[&a]),
        }
    }

    pub(super) fn filled(&mut self, ty: Type, a: Register) -> Register {
        if ty.bits() < 32 { self.normalised(ty, a) } else { a }
    }

    /// The bits of an integer with zeros above.
    fn zero_filled(&mut self, ty: Type, a: Operand) -> String {
        let operand = self.operand(a);
        match ty {
            Type::I8 => self.compute(Class::B32, "and.b32", &[&operand, "255"]).to_string(),
            Type::I16 => self.compute(Class::B32, "and.b32", &[&operand, "65535"]).to_string(),
            _ => operand,
        }
    }

    pub(super) fn integer_unary(&mut self, op: UnaryOp, ty: Type, a: Operand) -> Register {
        let (class, bits, width) = (Class::of(ty), bits_name(ty), ty.bits());
        match op {
            UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs => {
                let signed = if width == 64 { "s64" } else { "s32" };
                let a = self.operand(a);
                let result = match op {
                    UnaryOp::Neg => self.compute(class, &format!("neg.{signed}"), &[&a]),
                    UnaryOp::Not => self.compute(class, &format!("not.{bits}"), &[&a]),
                    _ if ty.is_signed() => self.compute(class, &format!("abs.{signed}"), &[&a]),
                    _ => return self.compute(class, &format!("mov.{bits}"), &[&a]),
                };
                self.filled(ty, result)
            }
            UnaryOp::CountOnes => {
                let a = self.zero_filled(ty, a);
                self.compute(Class::B32, &format!("popc.{bits}"), &[&a])
            }
            UnaryOp::LeadingZeros => {
                let a = self.zero_filled(ty, a);
                let count = self.compute(Class::B32, &format!("clz.{bits}"), &[&a]);
                match 32u32.checked_sub(width) {
                    Some(unused) if unused > 0 => {
                        self.compute(Class::B32, "sub.u32", &[&count.to_string(), &unused.to_string()])
                    }
                    _ => count,
                }
            }
            UnaryOp::TrailingZeros => {
                let mut a = self.zero_filled(ty, a);
                if width < 32 {
                    // A bit above the type ends the count.
                    let guard = (1u32 << width).to_string();
                    a = self.compute(Class::B32, "or.b32", &[&a, &guard]).to_string();
                }
                let reversed = self.compute(class, &format!("brev.{bits}"), &[&a]).to_string();
                self.compute(Class::B32, &format!("clz.{bits}"), &[&reversed])
            }
            _ => {
                let a = self.zero_filled(ty, a);
                let reversed = self.compute(class, &format!("brev.{bits}"), &[&a]);
                if width >= 32 {
                    return reversed;
                }
                let unused = (32 - width).to_string();
                let moved = self.compute(Class::B32, "shr.u32", &[&reversed.to_string(), &unused]);
                self.filled(ty, moved)
            }
        }
    }

    pub(super) fn integer_binary(&mut self, op: BinaryOp, ty: Type, a: Operand, b: Operand) -> Register {
        let class = Class::of(ty);
        match op {
            BinaryOp::Div | BinaryOp::Rem => return self.divide(op, ty, a, b),
            BinaryOp::RotateLeft | BinaryOp::RotateRight => return self.rotate(op, ty, a, b),
            BinaryOp::MulHi => return self.multiply_high(ty, a, b),
            BinaryOp::Shl | BinaryOp::Shr => return self.shift(op, ty, a, b),
            _ => {}
        }
        let (a, b) = (self.operand(a), self.operand(b));
        let instruction = match op {
            BinaryOp::Add => format!("add.{}", name(ty)),
            BinaryOp::Sub => format!("sub.{}", name(ty)),
            BinaryOp::Mul => format!("mul.lo.{}", name(ty)),
            BinaryOp::Min => format!("min.{}", name(ty)),
            BinaryOp::Max => format!("max.{}", name(ty)),
            BinaryOp::And => format!("and.{}", bits_name(ty)),
            BinaryOp::Or => format!("or.{}", bits_name(ty)),
            _ => format!("xor.{}", bits_name(ty)),
        };
        let result = self.compute(class, &instruction, &[&a, &b]);
        match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => self.filled(ty, result),
            _ => result,
        }
    }

    /// The instruction clamps counts to the width, and small types have their fill above. A literal beyond the width is
    /// not left to it: the driver's compiler joins a multiplication with the shift that follows by the count's low bits.
    fn shift(&mut self, op: BinaryOp, ty: Type, a: Operand, by: Operand) -> Register {
        let most = u64::from(ty.bits()) - 1;
        let beyond = matches!(by, Operand::Literal(count) if count.bits() > most);
        let fills = op == BinaryOp::Shr && ty.is_signed();
        if beyond && !fills {
            return self.register(Literal::new(ty, 0).into());
        }
        // Seen with products of 64 bits alone.
        let beyond_is_possible = ty.bits() == 64
            && matches!(by, Operand::Value(_))
            && !self.ranges.is_at_most(self.draft, by, most);
        let by = if beyond { most.to_string() } else { self.operand(by) };
        let a = self.operand(a);
        if op == BinaryOp::Shr {
            return self.compute(Class::of(ty), &format!("shr.{}", name(ty)), &[&a, &by]);
        }
        let result = self.compute(Class::of(ty), &format!("shl.{}", bits_name(ty)), &[&a, &by]);
        let result = if beyond_is_possible { self.zero_beyond(ty, result, &by) } else { result };
        self.filled(ty, result)
    }

    /// Zero where a count is beyond the width. The driver's compiler unrolls loops, and then a counter is a literal to it.
    fn zero_beyond(&mut self, ty: Type, shifted: Register, by: &str) -> Register {
        let inside = self.compute(Class::Pred, "setp.lt.u32", &[by, &ty.bits().to_string()]).to_string();
        let select = format!("selp.{}", bits_name(ty));
        self.compute(Class::of(ty), &select, &[&shifted.to_string(), "0", &inside])
    }

    fn multiply_high(&mut self, ty: Type, a: Operand, b: Operand) -> Register {
        let (a, b) = (self.operand(a), self.operand(b));
        if ty.bits() >= 32 {
            return self.compute(Class::of(ty), &format!("mul.hi.{}", name(ty)), &[&a, &b]);
        }
        let product = self.compute(Class::B32, &format!("mul.lo.{}", name(ty)), &[&a, &b]);
        let width = ty.bits().to_string();
        self.compute(Class::B32, &format!("shr.{}", name(ty)), &[&product.to_string(), &width])
    }

    fn rotate(&mut self, op: BinaryOp, ty: Type, a: Operand, by: Operand) -> Register {
        let width = ty.bits();
        let literal = match by {
            Operand::Literal(count) => Some(count.bits() % u64::from(width)),
            Operand::Value(_) => None,
        };
        // The other shift would be by the whole width, which is not left to the driver's compiler where it is a literal.
        if literal == Some(0) {
            return self.register(a);
        }
        let value = self.zero_filled(ty, a);
        let by = self.operand(by);
        if width == 32 {
            let direction = if op == BinaryOp::RotateLeft { "l" } else { "r" };
            return self.compute(Class::B32, &format!("shf.{direction}.wrap.b32"), &[&value, &value, &by]);
        }
        let class = Class::of(ty);
        let (by, rest) = match literal {
            Some(count) => (count.to_string(), (u64::from(width) - count).to_string()),
            None => {
                let by = self.compute(Class::B32, "and.b32", &[&by, &(width - 1).to_string()]).to_string();
                // Where nothing is moved both shifts are by nothing, and what they give is the same.
                let rest = self.compute(Class::B32, "neg.s32", &[&by]).to_string();
                let rest =
                    self.compute(Class::B32, "and.b32", &[&rest, &(width - 1).to_string()]).to_string();
                (by, rest)
            }
        };
        let (up, down) = if op == BinaryOp::RotateLeft { (by, rest) } else { (rest, by) };
        let high = self.compute(class, &format!("shl.{}", bits_name(ty)), &[&value, &up]).to_string();
        let unsigned = if width == 64 { "u64" } else { "u32" };
        let low = self.compute(class, &format!("shr.{unsigned}"), &[&value, &down]).to_string();
        let result = self.compute(class, &format!("or.{}", bits_name(ty)), &[&high, &low]);
        self.filled(ty, result)
    }

    /// The smallest and largest number of a type that fits in 32 bits.
    pub(super) fn bounds(ty: Type) -> [String; 2] {
        let bounds = match ty.is_signed() {
            true => [1u64 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1],
            false => [0, ty.mask()],
        };
        bounds.map(|bits| Literal::new(ty, bits).as_integer().to_string())
    }
}
