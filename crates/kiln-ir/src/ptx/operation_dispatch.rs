//! Dispatches each operation to the file that emits it.

use super::register::{Class, Register};
use super::writer::{Writer, ins};
use crate::operation::{BinaryOp, Builtin, CompareOp, Op, Operand, UnaryOp};
use crate::scalar_type::Type;

impl Writer<'_> {
    /// Computes an operation; the register with its result.
    pub(super) fn operation(&mut self, op: &Op) -> Register {
        match op {
            Op::Unary { op, ty, a } => match ty {
                Type::Bool => self.not(*a),
                _ if ty.is_float() => self.float_unary(*op, *ty, *a),
                _ => self.integer_unary(*op, *ty, *a),
            },
            Op::Binary { op, ty, a, b } => match ty {
                Type::Bool => self.logic(*op, *a, *b),
                _ if ty.is_float() => self.float_binary(*op, *ty, *a, *b),
                _ => self.integer_binary(*op, *ty, *a, *b),
            },
            Op::Compare { op, ty, a, b } => self.compare(*op, *ty, *a, *b),
            Op::Select { ty, condition, a, b } => self.select(*ty, *condition, *a, *b),
            Op::Fma { ty, a, b, c } => self.fma(*ty, [*a, *b, *c]),
            Op::Convert { from, to, a } => self.convert(*from, *to, *a),
            Op::Bitcast { from, to, a } => self.bitcast(*from, *to, *a),
            Op::Builtin(builtin) => self.builtin(*builtin),
            Op::Parameter(id) => self.scalar(*id),
            Op::Read(id) => self.read(*id),
            Op::Load { memory, index } => self.load(*memory, *index),
            Op::Length(memory) => self.length_of(*memory),
            Op::Atomic { .. } => self.atomic(op),
            Op::Warp { op, ty, a, by } => self.warp(*op, *ty, *a, *by),
            Op::BlockVote { vote, a } => self.block_vote(*vote, *a),
            // Functions were expanded before.
            Op::Function { a, .. } => self.register(*a),
        }
    }

    fn not(&mut self, a: Operand) -> Register {
        let a = self.operand(a);
        self.compute(Class::Pred, "not.pred", &[&a])
    }

    fn logic(&mut self, op: BinaryOp, a: Operand, b: Operand) -> Register {
        let (a, b) = (self.operand(a), self.operand(b));
        let name = match op {
            BinaryOp::And => "and.pred",
            BinaryOp::Or => "or.pred",
            _ => "xor.pred",
        };
        self.compute(Class::Pred, name, &[&a, &b])
    }

    fn compare(&mut self, op: CompareOp, ty: Type, a: Operand, b: Operand) -> Register {
        if ty == Type::Bool {
            let differ = self.logic(BinaryOp::Xor, a, b);
            return match op {
                CompareOp::Eq => self.compute(Class::Pred, "not.pred", &[&differ.to_string()]),
                _ => differ,
            };
        }
        let word = match op {
            CompareOp::Eq => "eq",
            // Of floats this one also holds for NaN.
            CompareOp::Ne if ty.is_float() => "neu",
            CompareOp::Ne => "ne",
            CompareOp::Lt => "lt",
            CompareOp::Le => "le",
            CompareOp::Gt => "gt",
            CompareOp::Ge => "ge",
        };
        let (a, b, suffix) = match ty {
            Type::F16 | Type::Bf16 => {
                let (a, b) = (self.widened(ty, a), self.widened(ty, b));
                (a.to_string(), b.to_string(), "f32".to_owned())
            }
            Type::F32 => (self.operand(a), self.operand(b), self.f32_name()),
            Type::F64 => (self.operand(a), self.operand(b), "f64".to_owned()),
            _ => (self.operand(a), self.operand(b), super::integer::name(ty).to_owned()),
        };
        self.compute(Class::Pred, &format!("setp.{word}.{suffix}"), &[&a, &b])
    }

    fn select(&mut self, ty: Type, condition: Operand, a: Operand, b: Operand) -> Register {
        let condition = self.register(condition);
        let class = Class::of(ty);
        let (a, b) = (self.operand(a), self.operand(b));
        if class == Class::Pred {
            let yes = self.compute(Class::Pred, "and.pred", &[&condition.to_string(), &a]);
            let other = self.compute(Class::Pred, "not.pred", &[&condition.to_string()]);
            let no = self.compute(Class::Pred, "and.pred", &[&other.to_string(), &b]);
            return self.compute(Class::Pred, "or.pred", &[&yes.to_string(), &no.to_string()]);
        }
        self.compute(class, &format!("selp.{}", class.name()), &[&a, &b, &condition.to_string()])
    }

    fn bitcast(&mut self, from: Type, to: Type, a: Operand) -> Register {
        let a = self.register(a);
        let class = Class::of(to);
        match (from.bytes(), a.class == class) {
            // Small integers: the bits of the type, filled as the other type wants it.
            (1 | 2, true) if to.is_integer() => self.normalised(to, a),
            (_, true) => a,
            (2, _) if class == Class::B16 => self.compute(class, "cvt.u16.u32", &[&a.to_string()]),
            (2, _) => {
                let wide = self.compute(Class::B32, "cvt.u32.u16", &[&a.to_string()]);
                self.normalised(to, wide)
            }
            (4, _) => self.compute(class, "mov.b32", &[&a.to_string()]),
            _ => self.compute(class, "mov.b64", &[&a.to_string()]),
        }
    }

    fn builtin(&mut self, builtin: Builtin) -> Register {
        let to = self.fresh(Class::of(builtin.ty()));
        let threads = self.draft.block;
        match builtin {
            Builtin::Thread(axis) => ins!(self, "mov.u32 {to}, %tid.{axis}"),
            Builtin::Block(axis) => ins!(self, "mov.u32 {to}, %ctaid.{axis}"),
            Builtin::BlockDim(axis) => ins!(self, "mov.u32 {to}, {}", threads[axis.index()]),
            Builtin::GridDim(axis) => ins!(self, "mov.u32 {to}, %nctaid.{axis}"),
            Builtin::Global(axis) => {
                let block = self.compute(Class::B32, "mov.u32", &[&format!("%ctaid.{axis}")]);
                let thread = self.compute(Class::B32, "mov.u32", &[&format!("%tid.{axis}")]);
                let wide = self.compute(Class::B64, "cvt.u64.u32", &[&thread.to_string()]);
                ins!(self, "mad.wide.u32 {to}, {block}, {}, {wide}", threads[axis.index()]);
            }
            Builtin::Lane => return self.lane(),
            Builtin::Warp => {
                let thread = self.thread_number();
                ins!(self, "shr.u32 {to}, {thread}, 5");
            }
        }
        to
    }

    /// The name of `f32` in instructions that flush if the program wants that.
    pub(super) fn f32_name(&self) -> String {
        if self.draft.flush { "ftz.f32".to_owned() } else { "f32".to_owned() }
    }

    /// Whether an operation needs a rounding written in its name.
    pub(super) fn unary_round(op: UnaryOp) -> Option<&'static str> {
        Some(match op {
            UnaryOp::Floor => "rmi",
            UnaryOp::Ceil => "rpi",
            UnaryOp::Trunc => "rzi",
            UnaryOp::Round => "rni",
            _ => return None,
        })
    }
}
