//! Instruction sets, and how a loop gets into one.

/// A loop over lanes. Its body is compiled once for each instruction set, so it and all it calls must be inlined.
pub trait LaneLoop {
    /// What it answers.
    type Output;

    /// Runs it. `FUSED`: `mul_add` of a float is one instruction here. Implementations are `#[inline(always)]`.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

/// Instructions that a processor has.
///
/// ```
/// use kiln_lanes::{InstructionSet, LaneLoop};
///
/// struct Sum<'a>(&'a [u64; 32]);
///
/// impl LaneLoop for Sum<'_> {
///     type Output = u64;
///     #[inline(always)]
///     fn run<const FUSED: bool>(self) -> u64 {
///         self.0.iter().sum()
///     }
/// }
///
/// assert_eq!(InstructionSet::detected().run(Sum(&[3; 32])), 96);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What every processor of the target has.
    Portable,
    /// AVX2 with fused multiplication and addition, and what came with them: x86-64-v3.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What every 64-bit ARM has.
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl InstructionSet {
    /// What every processor of the target has, used without fused instructions.
    pub const PORTABLE: Self = Self(Kind::Portable);

    /// The best one that this processor has.
    #[inline]
    pub fn detected() -> Self {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
            && std::arch::is_x86_feature_detected!("popcnt")
        {
            return Self(Kind::Avx2);
        }
        #[cfg(target_arch = "aarch64")]
        return Self(Kind::Neon);
        #[cfg(not(target_arch = "aarch64"))]
        Self::PORTABLE
    }

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "NEON",
        }
    }

    /// Runs a loop.
    #[inline(always)]
    pub fn run<L: LaneLoop>(self, lanes: L) -> L::Output {
        match self.0 {
            Kind::Portable => lanes.run::<false>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `detected` alone makes this kind, after the processor said that it has all these features.
            Kind::Avx2 => unsafe { with_avx2(lanes) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => lanes.run::<true>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<L: LaneLoop>(lanes: L) -> L::Output {
    lanes.run::<true>()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fused<'a>([&'a [f32; 32]; 3]);

    impl LaneLoop for Fused<'_> {
        type Output = (bool, [u32; 32]);

        #[inline(always)]
        fn run<const FUSED: bool>(self) -> Self::Output {
            let [a, b, c] = self.0;
            (FUSED, std::array::from_fn(|lane| a[lane].mul_add(b[lane], c[lane]).to_bits()))
        }
    }

    #[test]
    fn every_set_gives_the_same_bits() {
        let value = |factor: f32| -> [f32; 32] { std::array::from_fn(|lane| lane as f32 * factor + 0.1) };
        let (a, b, c) = (value(1.1), value(-0.7), value(3.3e-7));
        let [portable, best] =
            [InstructionSet::PORTABLE, InstructionSet::detected()].map(|set| set.run(Fused([&a, &b, &c])));
        assert!(!portable.0);
        assert_eq!(best.0, InstructionSet::detected() != InstructionSet::PORTABLE);
        assert_eq!(portable.1, best.1);
    }
}
