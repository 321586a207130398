//! The arguments of an operation, out of the packed ones of a launch.

use kiln_driver::{Error, Result};
use kiln_operation::{ARGUMENT_BYTES, OperationOperand};

/// The most arguments an operation of a library has, workspace included. Groups of collectives have more.
const MOST_ARGUMENTS: usize = 10;
/// Workspace is aligned to this.
const WORKSPACE_ALIGNMENT: u64 = 256;
/// An address that is used where none is accessed.
const PLACEHOLDER: u64 = 1 << 32;

/// The arguments of one launch where they lie: addresses, and scalars as the bits of an `f64`.
#[derive(Clone, Copy)]
pub(crate) struct OperationArguments<'a> {
    words: &'a [[u8; 8]],
    /// How many come before the workspace.
    operands: usize,
}

/// What the arguments of a launch are compared with: the usual ones by their bits alone, because every launch does it.
pub(super) struct ArgumentCheck {
    words: [WordCheck; MOST_ARGUMENTS],
    /// Operands, and the workspace where there is one; more than fit where each launch is compared in full.
    count: usize,
    /// How many come before the workspace.
    operands: usize,
}

/// What one word is compared with.
#[derive(Clone, Copy, Default)]
struct WordCheck {
    /// Bits below the alignment of an address; none for a scalar.
    low_bits: u16,
    /// Whether it is an address, and not null then.
    is_address: bool,
}

impl ArgumentCheck {
    pub(super) fn new(operands: &[OperationOperand], workspace_bytes: u64) -> Self {
        let addresses = operands.iter().map(|operand| (operand.effect.is_memory(), operand.alignment));
        let workspace = (workspace_bytes > 0).then_some((true, WORKSPACE_ALIGNMENT));
        let mut words = [WordCheck::default(); MOST_ARGUMENTS];
        let mut count = 0;
        for (at, (is_address, alignment)) in addresses.chain(workspace).enumerate() {
            count = at + 1;
            // An alignment that is no power of two of 16 bits is compared in full.
            let low_bits = u16::try_from(alignment.max(1) - 1).ok().filter(|_| alignment.is_power_of_two());
            match (words.get_mut(at), low_bits) {
                (Some(word), Some(low_bits)) => {
                    *word = WordCheck { low_bits: if is_address { low_bits } else { 0 }, is_address };
                }
                _ => return Self { words, count: usize::MAX, operands: operands.len() },
            }
        }
        Self { words, count, operands: operands.len() }
    }

    /// The arguments of a launch; none if they need a closer look.
    #[inline]
    pub(super) fn read<'a>(&self, packed: &'a [u8]) -> Option<OperationArguments<'a>> {
        let (words, rest) = packed.as_chunks::<8>();
        if words.len() != self.count || !rest.is_empty() {
            return None;
        }
        for (check, bytes) in self.words.iter().zip(words) {
            let word = u64::from_ne_bytes(*bytes);
            if word & u64::from(check.low_bits) != 0 || check.is_address && word == 0 {
                return None;
            }
        }
        Some(OperationArguments { words, operands: self.operands })
    }
}

impl<'a> OperationArguments<'a> {
    /// Reads packed arguments and checks addresses: none is null, and each is aligned as the operation was told.
    pub(super) fn new(
        call: &'static str,
        name: &'static str,
        operands: &[OperationOperand],
        workspace_bytes: u64,
        packed: &'a [u8],
    ) -> Result<Self> {
        let count = operands.len() + usize::from(workspace_bytes > 0);
        let wanted = count * ARGUMENT_BYTES as usize;
        if !(wanted..=wanted.next_multiple_of(16)).contains(&packed.len()) {
            let what = format!("{} bytes of arguments for {name}, which takes {wanted}", packed.len());
            return Err(Error::invalid(
                call,
                what,
                "give eight bytes for each operand, and the workspace last",
            ));
        }
        let (words, _) = packed.as_chunks::<8>();
        let memory =
            operands.iter().map(|operand| (operand.name, operand.effect.is_memory(), operand.alignment));
        let workspace = (workspace_bytes > 0).then_some(("workspace", true, WORKSPACE_ALIGNMENT));
        for ((operand, is_memory, alignment), word) in
            memory.chain(workspace).zip(words.iter().map(|bytes| u64::from_ne_bytes(*bytes)))
        {
            if is_memory && (word == 0 || !word.is_multiple_of(alignment)) {
                let what =
                    format!("{operand} of {name} at {word:#x}, which must be a multiple of {alignment}");
                return Err(Error::invalid(call, what, "give the address of aligned memory"));
            }
        }
        Ok(Self { words, operands: operands.len() })
    }

    /// An argument as it was given; 0 if there is none.
    #[inline]
    pub(super) fn word(&self, index: usize) -> u64 {
        self.words.get(index).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
    }

    /// The address of an operand.
    #[inline]
    pub(super) fn address(&self, index: usize) -> *mut std::ffi::c_void {
        std::ptr::without_provenance_mut(self.word(index) as usize)
    }

    /// A scalar.
    #[inline]
    pub(super) fn scalar(&self, index: usize) -> f64 {
        f64::from_bits(self.word(index))
    }

    /// The address of the workspace, or null.
    #[inline]
    pub(super) fn workspace(&self) -> *mut std::ffi::c_void {
        self.address(self.operands)
    }
}

/// Packed arguments that point to nothing, for a capture that is never run.
pub(super) fn placeholders(operands: &[OperationOperand], workspace_bytes: u64) -> Vec<u8> {
    let one = 1.0_f64.to_bits();
    let words = operands.iter().zip(1_u64..).map(|(operand, at)| match operand.effect.is_memory() {
        true => PLACEHOLDER * at,
        false => one,
    });
    let workspace = (workspace_bytes > 0).then_some(PLACEHOLDER * 100);
    words.chain(workspace).flat_map(u64::to_ne_bytes).collect()
}
