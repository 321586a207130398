//! Values for the tests of primitives: random ones by a small generator, special ones, and many that are equal.

/// Numbers that look random (SplitMix64).
pub(crate) fn words(seed: u64, len: usize) -> Vec<u64> {
    (0..len as u64)
        .map(|at| {
            let mut word = (seed << 32).wrapping_add(at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^ (word >> 31)
        })
        .collect()
}

pub(crate) fn u32s(seed: u64, len: usize) -> Vec<u32> {
    words(seed, len).into_iter().map(|word| word as u32).collect()
}

/// Every bit pattern, and so NaN, infinities, zeros of both signs and numbers below the normal ones.
pub(crate) fn f32s(seed: u64, len: usize) -> Vec<f32> {
    const SPECIAL: [f32; 8] =
        [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE / 4.0, 1.0, -1.0];
    let special = |word: u64| {
        if word.is_multiple_of(5) { SPECIAL[(word >> 40) as usize % 8] } else { f32::from_bits(word as u32) }
    };
    words(seed, len).into_iter().map(special).collect()
}

pub(crate) fn f64s(seed: u64, len: usize) -> Vec<f64> {
    const SPECIAL: [f64; 6] = [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -1.0];
    let special = |word: u64| {
        if word.is_multiple_of(5) { SPECIAL[(word >> 40) as usize % 6] } else { f64::from_bits(word) }
    };
    words(seed, len).into_iter().map(special).collect()
}

/// Floats of moderate size.
pub(crate) fn plain_f32s(seed: u64, len: usize) -> Vec<f32> {
    words(seed, len).into_iter().map(|word| (word as i32) as f32 / 65_536.0).collect()
}

/// The bits of floats, which equal themselves also where they are no numbers.
pub(crate) fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

pub(crate) fn bits64(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}
