//! Pseudo-random numbers and orders, fixed by a seed.

/// A small generator: a 64-bit linear congruence with its high bits mixed down.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Self { state: seed ^ 0x9e37_79b9_7f4a_7c15 };
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = self.state ^ (self.state >> 33);
        mixed.wrapping_mul(0xff51_afd7_ed55_8ccd) ^ (mixed >> 29)
    }

    /// A number below `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Puts a list into another order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// Blocks that start in any order. Blocks before them have started: a kernel may wait for blocks with smaller numbers, as it may on hardware.
const WINDOW: u64 = 64;

/// An order of the numbers below `count` that needs no memory. Seed 0 leaves them as they are; another seed changes their order within
/// windows of neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    count: u64,
    seed: u64,
}

impl Order {
    pub(crate) fn new(count: u64, seed: u64) -> Self {
        Self { count, seed }
    }

    /// The number at a place of the order.
    pub(crate) fn at(&self, place: u64) -> u64 {
        let base = place - place % WINDOW;
        let count = self.count.saturating_sub(base).min(WINDOW);
        if self.seed == 0 || count < 2 {
            return place;
        }
        let mut random = Random::new(self.seed ^ base.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let mut step = 1 + random.below(count - 1);
        while gcd(step, count) != 1 {
            step = step % (count - 1) + 1;
        }
        base + ((place - base) * step + random.below(count)) % count
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 6, 64, 97, 1000] {
            for seed in 0..20 {
                let order = Order::new(count, seed);
                let mut seen: Vec<u64> = (0..count).map(|place| order.at(place)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..count));
            }
        }
    }

    #[test]
    fn a_number_comes_near_its_place_and_seeds_differ() {
        for seed in 1..20 {
            let order = Order::new(1000, seed);
            let orders: Vec<u64> = (0..1000).map(|place| order.at(place)).collect();
            assert!((0..).zip(&orders).all(|(place, number)| number.abs_diff(place) < WINDOW));
            assert!(orders.iter().copied().ne(0..1000), "seed {seed}");
        }
    }
}
