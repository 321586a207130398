//! Simplification: constant folding and dead code elimination.
//!
//! Results stay bit-identical. The count of accesses out of range may change, because unused loads are removed, and
//! names of values are dropped, because blocks that are always taken are merged with those around them.

mod constant_folding;
mod dead_code;

use crate::program::Program;
use crate::rewrite::rewrite;

impl Program {
    /// The same program after constant folding and dead code elimination.
    ///
    /// ```
    /// use kiln_ir::Program;
    ///
    /// let long = Program::parse("kernel f(out x: u32[]) block(1) { if 2u32 < 3u32 { x[0] = 4u32 * 5u32; } let y = lane; }")?;
    /// assert_eq!(long.simplified().to_string(), "kernel f(out x: u32[]) block(1) {\n    x[0u64] = 20u32;\n}\n");
    /// # Ok::<(), kiln_ir::TextError>(())
    /// ```
    pub fn simplified(&self) -> Self {
        let folded = rewrite(self, &mut constant_folding::Fold { flush: self.flush });
        let live = dead_code::Live::in_draft(&folded);
        Self::trusted(rewrite(&folded, &mut dead_code::Drop { live }))
    }
}
