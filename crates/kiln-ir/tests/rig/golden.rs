//! The programs of the folder `kir`, inside of the test binary, so that it can be taken to a machine without the sources.

macro_rules! programs {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../kir/", $name, ".kir")))),*] };
}

/// Names and texts.
pub(crate) const GOLDEN: &[(&str, &str)] = programs! {
    "adjacent"
    "angles"
    "atomics"
    "block_votes"
    "brain_floats"
    "conversions"
    "doubles"
    "early_return"
    "floats"
    "flushed"
    "folding"
    "functions"
    "grid_barrier"
    "guards"
    "halves"
    "histogram"
    "integers"
    "lengths"
    "loops"
    "matrix"
    "out_of_range"
    "persistent"
    "reverse_block"
    "saxpy"
    "selects"
    "shared_zero"
    "shifted_products"
    "shifts"
    "shuffles"
    "small_integers"
    "three_dimensions"
    "trap_in_grid"
    "traps"
    "truths"
    "unchecked"
    "warp_reductions"
    "warp_votes"
    "while_loops"
    "wide_atomics"
    "wide_integers"
};
