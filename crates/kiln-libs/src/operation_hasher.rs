//! A hash function for operations: a few dozen short fields, looked up at every call.

use std::hash::Hasher;

/// Odd, with its bits spread: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Folds words with one multiplication each. The keys are the program's own operations, so it need not resist keys that are chosen to collide.
#[derive(Clone, Copy, Default)]
pub(crate) struct OperationHasher(u64);

impl OperationHasher {
    fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }
}

impl Hasher for OperationHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.fold(u64::from(*byte));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.fold(value as u64);
    }

    fn finish(&self) -> u64 {
        // The table takes its index from the low bits, and a multiplication moves differences up.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::OperationHasher;

    #[test]
    fn sizes_that_differ_little_fall_into_different_places() {
        let builder = BuildHasherDefault::<OperationHasher>::default();
        let sizes = (0..64_u64).flat_map(|m| (0..64_u64).map(move |n| (m * 128, n * 128, 64_u64, false)));
        let places: HashSet<u64> = sizes.map(|size| builder.hash_one(size) % 65_536).collect();
        // 4,096 random places of 65,536 leave about 3,970 different ones.
        assert!(places.len() > 3_800, "{} places", places.len());
    }
}
