//! Inputs from a seed.

/// A small generator of pseudo-random numbers.
///
/// ```
/// let mut one = kiln_kernels::Random::new(7);
/// let mut two = kiln_kernels::Random::new(7);
/// assert_eq!(one.next(), two.next());
/// ```
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        let mut random = Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d };
        random.next();
        random
    }

    /// Any 64 bits.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// An integer from `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let count = (i128::from(high) - i128::from(low) + 1).max(1) as u128;
        (i128::from(low) + (u128::from(self.next()) % count) as i128) as i64
    }

    /// A number from `low` to `high`.
    pub fn float(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `count` values made by `make`.
    pub fn list<T>(&mut self, count: usize, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..count).map(|_| make(self)).collect()
    }

    /// Integers from `low` to `high`.
    pub fn i32s(&mut self, count: usize, low: i32, high: i32) -> Vec<i32> {
        self.list(count, |r| r.within(low.into(), high.into()) as i32)
    }

    /// Integers below `bound`.
    pub fn u32s(&mut self, count: usize, bound: u32) -> Vec<u32> {
        self.list(count, |r| r.within(0, i64::from(bound) - 1) as u32)
    }

    /// Any integers.
    pub fn words(&mut self, count: usize) -> Vec<u32> {
        self.list(count, |r| r.next() as u32)
    }

    /// Any bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        self.list(count, |r| r.next() as u8)
    }

    /// Numbers from `low` to `high`.
    pub fn f32s(&mut self, count: usize, low: f32, high: f32) -> Vec<f32> {
        self.list(count, |r| r.float(low.into(), high.into()) as f32)
    }

    /// Numbers from `low` to `high`.
    pub fn f64s(&mut self, count: usize, low: f64, high: f64) -> Vec<f64> {
        self.list(count, |r| r.float(low, high))
    }

    /// Numbers of every size, some of them zero, subnormal, huge or close to each other; never NaN.
    pub fn wild_f32s(&mut self, count: usize) -> Vec<f32> {
        self.list(count, |r| {
            let bits = r.next();
            match bits >> 60 {
                0 => 0.0f32.copysign(if bits & 1 == 0 { 1.0 } else { -1.0 }),
                1 => f32::from_bits(bits as u32 & 0x807f_ffff),
                2 => f32::from_bits((bits as u32 & 0x80ff_ffff) | 0x7e00_0000),
                3..=8 => r.float(-100.0, 100.0) as f32,
                _ => Some(f32::from_bits(bits as u32)).filter(|x| x.is_finite()).unwrap_or(1.5),
            }
        })
    }

    /// The same in double precision.
    pub fn wild_f64s(&mut self, count: usize) -> Vec<f64> {
        self.list(count, |r| {
            let bits = r.next();
            match r.within(0, 15) {
                0 => 0.0f64.copysign(if bits & 1 == 0 { 1.0 } else { -1.0 }),
                1 => f64::from_bits(bits & 0x800f_ffff_ffff_ffff),
                2 => f64::from_bits((bits & 0x800f_ffff_ffff_ffff) | 0x7fe0_0000_0000_0000),
                3..=8 => r.float(-1e6, 1e6),
                _ => Some(f64::from_bits(bits)).filter(|x| x.is_finite()).unwrap_or(2.5),
            }
        })
    }
}
