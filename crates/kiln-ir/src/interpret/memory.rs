//! Elements in bytes, with the rules for what is out of range.

use super::outcome::{InterpretError, OutOfRange};
use crate::evaluate::{self, Mode};
use crate::operation::{AtomicOp, BinaryOp};
use crate::scalar_type::Type;

/// A load, store or atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Load,
    Store(u64),
    Atomic { op: AtomicOp, value: u64, expected: Option<u64> },
}

/// Elements of one type.
pub(super) struct Elements<'m> {
    pub(super) ty: Type,
    pub(super) bytes: &'m mut Vec<u8>,
    /// The name of a buffer whose accesses are not checked.
    pub(super) unchecked: Option<&'m str>,
}

impl Elements<'_> {
    fn length(&self) -> u64 {
        self.bytes.len() as u64 / self.ty.bytes()
    }

    /// Makes an access; the result of a load or atomic, otherwise 0.
    pub(super) fn access(
        &mut self,
        index: i128,
        access: Access,
        out_of_range: &mut OutOfRange,
    ) -> Result<u64, InterpretError> {
        let length = self.length();
        if index < 0 || index >= i128::from(length) {
            if let Some(buffer) = self.unchecked {
                return Err(InterpretError::Unchecked { buffer: buffer.to_owned(), index, length });
            }
            match access {
                Access::Load => out_of_range.loads += 1,
                Access::Store(_) => out_of_range.stores += 1,
                Access::Atomic { .. } => out_of_range.atomics += 1,
            }
            return Ok(0);
        }
        let start = index as usize * self.ty.bytes() as usize;
        let old = self.read(start);
        match access {
            Access::Load => {}
            Access::Store(value) => self.write(start, value),
            Access::Atomic { op, value, expected } => {
                self.write(start, changed(op, self.ty, old, value, expected))
            }
        }
        Ok(old)
    }

    fn read(&self, start: usize) -> u64 {
        let mut word = [0; 8];
        let size = self.ty.bytes() as usize;
        word[..size].copy_from_slice(&self.bytes[start..start + size]);
        let bits = u64::from_le_bytes(word);
        if self.ty == Type::Bool { u64::from(bits != 0) } else { bits }
    }

    fn write(&mut self, start: usize, value: u64) {
        let size = self.ty.bytes() as usize;
        self.bytes[start..start + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

/// What an atomic leaves behind.
fn changed(op: AtomicOp, ty: Type, old: u64, value: u64, expected: Option<u64>) -> u64 {
    let binary = |op| evaluate::binary(op, ty, old, value, Mode { flush: false });
    match op {
        AtomicOp::Add => binary(BinaryOp::Add),
        AtomicOp::Min => binary(BinaryOp::Min),
        AtomicOp::Max => binary(BinaryOp::Max),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::Exchange => value,
        AtomicOp::CompareExchange => {
            if expected == Some(old) {
                value
            } else {
                old
            }
        }
    }
}
