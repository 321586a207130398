//! Warp-level operations. The mask of every instruction has exactly the existing lanes.

use super::float::binary_name;
use super::register::{Class, Register};
use super::target::Feature;
use super::writer::{Writer, ins};
use crate::operation::{BinaryOp, Operand, WarpOp};
use crate::scalar_type::Type;

impl Writer<'_> {
    pub(super) fn warp(&mut self, op: WarpOp, ty: Type, a: Operand, by: Option<Operand>) -> Register {
        let mask = self.mask();
        let a = self.register(a);
        match op {
            WarpOp::Ballot => self.compute(Class::B32, "vote.sync.ballot.b32", &[&a.to_string(), &mask]),
            WarpOp::Any => self.compute(Class::Pred, "vote.sync.any.pred", &[&a.to_string(), &mask]),
            WarpOp::All => self.compute(Class::Pred, "vote.sync.all.pred", &[&a.to_string(), &mask]),
            WarpOp::Shuffle => {
                let lane = by.map_or_else(|| "0".to_owned(), |by| self.operand(by));
                self.shuffle(a, &lane)
            }
            WarpOp::ShuffleUp | WarpOp::ShuffleDown | WarpOp::ShuffleXor => {
                let by = by.map_or_else(|| "0".to_owned(), |by| self.operand(by));
                // Any distance of 32 or more leads out of the warp, and so does 32 itself.
                let by = self.compute(Class::B32, "min.u32", &[&by, "32"]).to_string();
                let lane = self.lane().to_string();
                let instruction = match op {
                    WarpOp::ShuffleUp => "sub.u32",
                    WarpOp::ShuffleDown => "add.u32",
                    _ => "xor.b32",
                };
                let from = self.compute(Class::B32, instruction, &[&lane, &by]).to_string();
                self.shuffle(a, &from)
            }
            _ => self.reduce(op, ty, a),
        }
    }

    /// The value of a lane, or the own value if there is no such lane.
    fn shuffle(&mut self, a: Register, from: &str) -> Register {
        let (lane, lanes) = (self.lane().to_string(), self.lanes());
        let exists = self.compute(Class::Pred, "setp.gt.u32", &[&lanes, from]).to_string();
        let from = self.compute(Class::B32, "selp.b32", &[from, &lane, &exists]).to_string();
        self.take(a, &from)
    }

    /// The value of a lane that exists.
    fn take(&mut self, a: Register, from: &str) -> Register {
        let mask = self.mask();
        let words = |writer: &mut Self, word: &str| {
            writer.compute(Class::B32, "shfl.sync.idx.b32", &[word, from, "31", &mask]).to_string()
        };
        match a.class {
            Class::B32 => self.compute(Class::B32, "shfl.sync.idx.b32", &[&a.to_string(), from, "31", &mask]),
            Class::F32 => self.compute(Class::F32, "shfl.sync.idx.b32", &[&a.to_string(), from, "31", &mask]),
            Class::Pred => {
                let word = self.compute(Class::B32, "selp.b32", &["1", "0", &a.to_string()]).to_string();
                let word = words(self, &word);
                self.compute(Class::Pred, "setp.ne.u32", &[&word, "0"])
            }
            Class::B16 => {
                let word = self.compute(Class::B32, "cvt.u32.u16", &[&a.to_string()]).to_string();
                let word = words(self, &word);
                self.compute(Class::B16, "cvt.u16.u32", &[&word])
            }
            Class::B64 | Class::F64 => {
                let (low, high) = (self.fresh(Class::B32), self.fresh(Class::B32));
                ins!(self, "mov.b64 {{{low}, {high}}}, {a}");
                let (low, high) = (words(self, &low.to_string()), words(self, &high.to_string()));
                self.compute(a.class, "mov.b64", &[&format!("{{{low}, {high}}}")])
            }
        }
    }

    fn reduce(&mut self, op: WarpOp, ty: Type, a: Register) -> Register {
        let binary = match op {
            WarpOp::Add => BinaryOp::Add,
            WarpOp::Min => BinaryOp::Min,
            WarpOp::Max => BinaryOp::Max,
            WarpOp::And => BinaryOp::And,
            WarpOp::Or => BinaryOp::Or,
            _ => BinaryOp::Xor,
        };
        if a.class == Class::B32 && self.uses(Feature::Redux) {
            let name = match binary {
                BinaryOp::And => "and.b32".to_owned(),
                BinaryOp::Or => "or.b32".to_owned(),
                BinaryOp::Xor => "xor.b32".to_owned(),
                BinaryOp::Min => format!("min.{}", super::integer::name(ty)),
                BinaryOp::Max => format!("max.{}", super::integer::name(ty)),
                _ => format!("add.{}", super::integer::name(ty)),
            };
            let mask = self.mask();
            let result = self.compute(Class::B32, &format!("redux.sync.{name}"), &[&a.to_string(), &mask]);
            return if ty.bits() < 32 && op == WarpOp::Add { self.normalised(ty, result) } else { result };
        }
        let (lane, lanes) = (self.lane().to_string(), self.lanes());
        let mut sum = a;
        for distance in ["16", "8", "4", "2", "1"] {
            let from = self.compute(Class::B32, "add.u32", &[&lane, distance]).to_string();
            let exists = self.compute(Class::Pred, "setp.gt.u32", &[&lanes, &from]).to_string();
            let from = self.compute(Class::B32, "selp.b32", &[&from, &lane, &exists]).to_string();
            let other = self.take(sum, &from);
            let both = self.combine(binary, ty, sum, other).to_string();
            let class = sum.class;
            sum = self.compute(class, &format!("selp.{}", class.name()), &[&both, &sum.to_string(), &exists]);
        }
        self.take(sum, "0")
    }

    /// An operation on two registers of a type.
    fn combine(&mut self, op: BinaryOp, ty: Type, a: Register, b: Register) -> Register {
        let (a, b) = (a.to_string(), b.to_string());
        match ty {
            Type::F16 | Type::Bf16 => {
                let (a, b) = (self.widen(ty, &a).to_string(), self.widen(ty, &b).to_string());
                let result = self.compute(Class::F32, &binary_name(op, "f32"), &[&a, &b]);
                self.narrow(ty, result)
            }
            Type::F32 => self.compute(Class::F32, &binary_name(op, &self.f32_name()), &[&a, &b]),
            Type::F64 => self.compute(Class::F64, &binary_name(op, "f64"), &[&a, &b]),
            _ => {
                let class = Class::of(ty);
                let (name, bits) = (super::integer::name(ty), class.name());
                let instruction = match op {
                    BinaryOp::Add => format!("add.{name}"),
                    BinaryOp::Min => format!("min.{name}"),
                    BinaryOp::Max => format!("max.{name}"),
                    BinaryOp::And => format!("and.{bits}"),
                    BinaryOp::Or => format!("or.{bits}"),
                    _ => format!("xor.{bits}"),
                };
                let result = self.compute(class, &instruction, &[&a, &b]);
                if ty.bits() < 32 && op == BinaryOp::Add { self.normalised(ty, result) } else { result }
            }
        }
    }
}
