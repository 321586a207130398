//! Scaled dot-product attention.

use crate::convolution::tensor;
use crate::element_type::ElementType;
use crate::error::OperationError;
use crate::extent::check_sizes;
use crate::field::{operation, words};
use crate::matmul::Determinism;
use crate::operand::{OperandEffect, OperationOperand};

words! {
    /// How queries, keys, values and results of attention lie in memory. The elements of a head lie side by side.
    AttentionLayout {
        /// Sequence after sequence, head after head, position after position.
        HeadsFirst = "heads_first",
        /// Sequence after sequence, position after position, head after head.
        PositionsFirst = "positions_first",
    }
}

words! {
    /// Which keys a query sees.
    AttentionMask {
        /// All of them.
        None = "none",
        /// Query `i` sees keys 0 to `i`: the diagonal begins at the first query and the first key.
        CausalTopLeft = "causal_top_left",
        /// The last query sees all keys, the one before it all but the last, and so on: the diagonal ends at the last query and the last key.
        CausalBottomRight = "causal_bottom_right",
    }
}

operation! {
    /// `o = softmax(scale q kᵀ) v` for each head of each sequence.
    Attention = "dnn.attention" {
        /// Of all tensors: `f16` or `bf16`.
        element: ElementType,
        /// Of all tensors.
        layout: AttentionLayout,
        /// How many sequences.
        batch: u64,
        /// Heads of queries and results.
        heads: u64,
        /// Heads of keys and values. Each is used by `heads / key_heads` heads of queries, one after the other.
        key_heads: u64,
        /// Positions of queries and results.
        queries: u64,
        /// Positions of keys and values.
        keys: u64,
        /// Elements of a head.
        head: u64,
        /// Which keys a query sees.
        mask: AttentionMask,
        /// Whether equal calls give equal bits.
        order: Determinism,
        /// Bytes of workspace at most.
        workspace: u64,
    }
}

impl AttentionLayout {
    /// Distances between sequences, heads and positions, in elements.
    pub fn strides(self, heads: u64, positions: u64, head: u64) -> [u64; 3] {
        let sequence = heads.saturating_mul(positions).saturating_mul(head);
        match self {
            Self::HeadsFirst => [sequence, positions.saturating_mul(head), head],
            Self::PositionsFirst => [sequence, head, heads.saturating_mul(head)],
        }
    }
}

impl Attention {
    /// How many keys a query sees, from the first on.
    pub fn seen(&self, query: u64) -> u64 {
        match self.mask {
            AttentionMask::None => self.keys,
            AttentionMask::CausalTopLeft => self.keys.min(query + 1),
            AttentionMask::CausalBottomRight => {
                self.keys.min((self.keys + query + 1).saturating_sub(self.queries))
            }
        }
    }

    /// Elements of a head at most.
    pub const HEAD_LIMIT: u64 = 128;

    pub(crate) fn operands(&self) -> Result<Vec<OperationOperand>, OperationError> {
        let Self { element, batch, heads, key_heads, queries, keys, head, .. } = *self;
        check_sizes(
            Self::NAME,
            &[
                ("batch", batch),
                ("heads", heads),
                ("key_heads", key_heads),
                ("queries", queries),
                ("keys", keys),
                ("head", head),
            ],
        )?;
        if !matches!(element, ElementType::F16 | ElementType::Bf16) {
            let what = format!("elements of {element}");
            let hint = "use f16 or bf16, or build it of blas.matmul and dnn.softmax";
            return Err(OperationError::shape(Self::NAME, what, hint));
        }
        if !head.is_multiple_of(8) || head > Self::HEAD_LIMIT {
            let what = format!("heads of {head} elements");
            return Err(OperationError::shape(Self::NAME, what, "use multiples of 8, up to 128"));
        }
        if !heads.is_multiple_of(key_heads) {
            let what = format!("{heads} heads of queries for {key_heads} heads of keys");
            return Err(OperationError::shape(Self::NAME, what, "use a multiple of the heads of keys"));
        }
        if self.mask == AttentionMask::CausalBottomRight && queries > keys {
            let what = format!("{queries} queries at the end of {keys} keys");
            let hint = "use at most as many queries as keys, so that each query sees a key";
            return Err(OperationError::shape(Self::NAME, what, hint));
        }
        let read = OperandEffect::Reads;
        Ok(vec![
            tensor(Self::NAME, "q", element, &[batch, heads, queries, head], read)?,
            tensor(Self::NAME, "k", element, &[batch, key_heads, keys, head], read)?,
            tensor(Self::NAME, "v", element, &[batch, key_heads, keys, head], read)?,
            tensor(Self::NAME, "o", element, &[batch, heads, queries, head], OperandEffect::Overwrites)?,
            OperationOperand::scalar("scale"),
        ])
    }
}
