//! A linear congruential generator, the same on every platform.

/// A linear congruential generator of 64 bits; it gives out the upper 31.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lcg(u64);

impl Lcg {
    /// The seed of all workloads.
    pub const SEED: u64 = 42;

    /// A generator that starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
