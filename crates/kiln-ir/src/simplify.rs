//! Programs made shorter without changing what they do: constants folded, what nobody uses left out.
//!
//! Results stay the same to the bit. What changes is how often something out of range is absorbed, because a load that
//! nobody uses is left out, and the names of values, because blocks that are always taken are joined with those
//! around them.

mod dead;
mod fold;

use crate::program::Program;
use crate::rewrite::rewrite;

impl Program {
    /// The same program, shorter.
    ///
    /// ```
    /// use kiln_ir::Program;
    ///
    /// let long = Program::parse("kernel f(out x: u32[]) block(1) { if 2u32 < 3u32 { x[0] = 4u32 * 5u32; } let y = lane; }")?;
    /// assert_eq!(long.simplified().to_string(), "kernel f(out x: u32[]) block(1) {\n    x[0u64] = 20u32;\n}\n");
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn simplified(&self) -> Self {
        let folded = rewrite(self, &mut fold::Fold { flush: self.flush });
        let live = dead::Live::in_draft(&folded);
        Self::trusted(rewrite(&folded, &mut dead::Drop { live }))
    }
}
