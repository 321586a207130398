//! The generator on the host: any number of a sequence by its position.

/// Subsequences that cuRAND interleaves in its default order.
const SUBSEQUENCES: u64 = 1 << 16;

/// The sequence of one seed, on the host. It gives the same numbers as the device.
///
/// ```
/// use kiln_libs::rand::Philox;
///
/// let sequence = Philox::new(42);
/// assert_eq!(sequence.u32(1_000_000), sequence.u32(1_000_000));
/// assert_ne!(sequence.u32(0), Philox::new(43).u32(0));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Philox {
    seed: u64,
}

impl Philox {
    /// The sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Philox4x32-10 itself: four words from a key and a counter.
    pub const fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
        let ([mut a, mut b, mut c, mut d], [mut low, mut high]) = (counter, key);
        let mut round = 0;
        while round < 10 {
            let p = 0xd251_1f53 * a as u64;
            let q = 0xcd9e_8d57 * c as u64;
            (a, b, c, d) = ((q >> 32) as u32 ^ b ^ low, q as u32, (p >> 32) as u32 ^ d ^ high, p as u32);
            low = low.wrapping_add(0x9e37_79b9);
            high = high.wrapping_add(0xbb67_ae85);
            round += 1;
        }
        [a, b, c, d]
    }

    /// The words at a counter of a subsequence.
    const fn words(self, counter: u64, subsequence: u32) -> [u32; 4] {
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        Self::block(key, [counter as u32, (counter >> 32) as u32, subsequence, 0])
    }

    /// The words of a group of four numbers of 32 bits.
    const fn group(self, group: u64) -> [u32; 4] {
        self.words(group / SUBSEQUENCES, (group % SUBSEQUENCES) as u32)
    }

    /// The words of a pair of numbers of 64 bits, two pairs from one subsequence after the other.
    const fn pair(self, pair: u64) -> [u32; 4] {
        let group = pair / 2;
        self.words(group / SUBSEQUENCES * 2 + pair % 2, (group % SUBSEQUENCES) as u32)
    }

    /// A word of [`Bits`](super::Bits).
    pub const fn u32(self, position: u64) -> u32 {
        self.group(position / 4)[(position % 4) as usize]
    }

    /// Two words of [`Bits`](super::Bits), the first one low.
    pub const fn u64(self, position: u64) -> u64 {
        let words = self.group(position / 2);
        let at = (position % 2) as usize * 2;
        words[at] as u64 | (words[at + 1] as u64) << 32
    }

    /// A number of [`Uniform`](super::Uniform): above 0, at most 1.
    pub fn f32(self, position: u64) -> f32 {
        self.u32(position) as f32 * (1.0 / 4_294_967_296.0) + 0.5 / 4_294_967_296.0
    }

    /// A number of [`Uniform`](super::Uniform): above 0, at most 1.
    pub fn f64(self, position: u64) -> f64 {
        const STEP: f64 = 1.0 / 9_007_199_254_740_992.0;
        let words = self.pair(position / 2);
        let at = (position % 2) as usize * 2;
        (u64::from(words[at]) ^ u64::from(words[at + 1]) << 21) as f64 * STEP + STEP / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the paper's own test vectors (Salmon and others, 2011).
    #[test]
    fn the_published_vectors_come_out() {
        assert_eq!(Philox::block([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            Philox::block([u32::MAX; 2], [u32::MAX; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            Philox::block([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn neighbours_share_a_group_and_groups_alternate_between_subsequences() {
        let sequence = Philox::new(7);
        let group = Philox::block([7, 0], [0, 0, 1, 0]);
        assert_eq!([4, 5, 6, 7].map(|position| sequence.u32(position)), group);
        assert_eq!(sequence.u32(4 << 16), Philox::block([7, 0], [1, 0, 0, 0])[0]);
        assert_eq!(sequence.u64(2), u64::from(group[0]) | u64::from(group[1]) << 32);
    }

    #[test]
    fn uniform_numbers_are_above_zero_and_at_most_one() {
        let sequence = Philox::new(1);
        for position in 0..100_000 {
            assert!(sequence.f32(position) > 0.0 && sequence.f32(position) <= 1.0);
            assert!(sequence.f64(position) > 0.0 && sequence.f64(position) <= 1.0);
        }
    }
}
