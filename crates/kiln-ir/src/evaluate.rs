//! What operations mean: bits in, bits out.
//!
//! Values travel as `u64`: the bits of their type, zero above. The interpreter and the folding of constants both
//! call these functions, so that there is one meaning.

pub(crate) mod half;
