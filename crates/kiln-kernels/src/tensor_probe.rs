//! Probes of tensor cores beyond `mma`: `wmma`, with its matrices in memory, and `mma.sp`, with its metadata.

use std::fmt::Write;

use crate::mma_operands::{Spread, bits, number};
use crate::seeded_inputs::Random;

/// Metadata of a sparse matrix: two elements of every four.
pub(crate) const PAIRS: &str = "pairs";
/// The same of `tf32`: one element of every two.
pub(crate) const SINGLES: &str = "singles";

/// An operand of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TensorOperand {
    pub(crate) element: &'static str,
    /// How many elements, a multiple of those in a word.
    pub(crate) count: usize,
}

impl TensorOperand {
    fn bytes(&self) -> usize {
        match self.element {
            PAIRS | SINGLES => 4,
            element => self.count * bits(element) as usize / 8,
        }
    }

    fn write(&self, spread: Spread, random: &mut Random, bytes: &mut Vec<u8>) {
        let nibble = |random: &mut Random| match self.element {
            SINGLES => [0b0100, 0b1110][random.within(0, 1) as usize],
            _ => [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110][random.within(0, 5) as usize],
        };
        if matches!(self.element, PAIRS | SINGLES) {
            let word = (0..8).fold(0u32, |word, at| word | nibble(random) << (4 * at));
            return bytes.extend(word.to_le_bytes());
        }
        let width = bits(self.element);
        let per = (32 / width).max(1);
        for _ in 0..self.count / per as usize {
            let word =
                (0..per).fold(0, |word, at| word | number(self.element, spread, random) << (at * width % 64));
            bytes.extend(&word.to_le_bytes()[..(width as usize / 8).max(4)]);
        }
    }
}

/// One instruction, or the few that make a product of matrices in memory, in one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorProbe {
    /// The dotted word of the product.
    pub text: String,
    /// What each thread brings, or the warp together.
    pub(crate) operands: Vec<TensorOperand>,
    /// Whether each thread brings it.
    pub(crate) is_by_thread: bool,
    /// Bytes of what each thread, or the warp, writes.
    pub(crate) results: usize,
    /// Declarations and instructions, after `%in` and `%out` point to what the thread or warp reads and writes.
    pub(crate) body: String,
}

impl TensorProbe {
    /// Threads of a block.
    pub const LANES: usize = 32;

    /// How many blocks run it: one for each kind of operands.
    pub const BLOCKS: usize = Spread::ALL.len();

    fn parts(&self) -> usize {
        if self.is_by_thread { Self::LANES } else { 1 }
    }

    /// The operands of all blocks.
    pub fn inputs(&self, seed: u64) -> Vec<u8> {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mut random = Random::new(self.text.bytes().fold(seed, hash));
        let mut bytes = Vec::new();
        for spread in Spread::ALL {
            for _ in 0..self.parts() {
                self.operands.iter().for_each(|operand| operand.write(spread, &mut random, &mut bytes));
            }
        }
        bytes
    }

    /// Bytes of the results of all blocks.
    pub fn result_bytes(&self) -> usize {
        Self::BLOCKS * self.parts() * self.results
    }

    /// Bytes of one element of the results.
    pub fn element_bytes(&self) -> usize {
        let sums = self.operands.get(2).map_or(32, |operand| bits(operand.element));
        if sums == 64 { 8 } else { 4 }
    }

    /// A module with the kernel `probe(inputs, results)`, for [`TensorProbe::BLOCKS`] blocks of one warp.
    pub fn module(&self) -> String {
        let mut text = String::from(
            ".version 8.7\n.target sm_90\n.address_size 64\n\n.visible .entry probe(.param .u64 inputs, .param .u64 results)\n{\n\
             .reg .b64 %in, %out, %at;\n.reg .b32 %part, %lane;\n\
             ld.param.u64 %in, [inputs];\nld.param.u64 %out, [results];\nmov.u32 %part, %ctaid.x;\nmov.u32 %lane, %tid.x;\n",
        );
        if self.is_by_thread {
            text.push_str("mad.lo.u32 %part, %part, 32, %lane;\n");
        }
        let bytes: usize = self.operands.iter().map(TensorOperand::bytes).sum();
        let _ = writeln!(text, "mul.wide.u32 %at, %part, {bytes};\nadd.s64 %in, %in, %at;");
        let _ = writeln!(text, "mul.wide.u32 %at, %part, {};\nadd.s64 %out, %out, %at;", self.results);
        text + &self.body + "ret;\n}\n"
    }

    /// Where an operand begins among those of its thread or warp.
    pub(crate) fn offset(operands: &[TensorOperand], at: usize) -> usize {
        operands.iter().take(at).map(TensorOperand::bytes).sum()
    }
}
