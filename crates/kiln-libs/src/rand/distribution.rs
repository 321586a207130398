//! The distributions: uniform, normal, log-normal and others.

use kiln_runtime::Element;

use super::kernel_text::{
    self as text, Grouping, UNIFORM_F32, UNIFORM_F64, each_pair, each_word, integers_32, integers_64,
};
use crate::Result;
use crate::error::LibraryError;

/// What can be drawn into elements of a type.
pub trait Distribution<T: Element> {
    /// The kernel that draws so many elements.
    ///
    /// # Errors
    /// Parameters that describe no distribution.
    fn kernel(&self, elements: u64) -> Result<RandomKernel>;
}

/// A kernel of a distribution with its parameters.
#[derive(Clone, Debug)]
pub struct RandomKernel {
    /// What messages call the draw, such as `rand.normal`.
    pub(super) call: &'static str,
    pub(super) name: &'static str,
    pub(super) text: fn() -> String,
    /// Elements that a thread writes.
    pub(super) per_thread: u64,
    /// Parameters behind seed and offset, as bytes.
    pub(super) values: Vec<Vec<u8>>,
}

impl RandomKernel {
    fn new(
        (call, name): (&'static str, &'static str),
        grouping: Grouping,
        text: fn() -> String,
        values: Vec<Vec<u8>>,
    ) -> Self {
        Self { call, name, text, per_thread: grouping.elements(), values }
    }
}

/// All bits random.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Bits;

/// Evenly distributed numbers above 0 and at most 1, as cuRAND's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Uniform;

/// Normally distributed numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Normal<T> {
    /// The mean.
    pub mean: T,
    /// The standard deviation: zero or more.
    pub deviation: T,
}

/// Numbers whose logarithms are normally distributed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogNormal<T> {
    /// The mean of the logarithms.
    pub mean: T,
    /// The standard deviation of the logarithms: zero or more.
    pub deviation: T,
}

/// 1 with a probability, otherwise 0.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bernoulli {
    /// From 0 to 1; it is rounded to a multiple of 2^-32.
    pub probability: f64,
}

/// Integers from `first` to `last`, both included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Integers<T> {
    /// The least.
    pub first: T,
    /// The greatest.
    pub last: T,
}

/// 0 to the length of the buffer less one, each once. Another offset is another permutation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Permutation;

fn bytes<T: Element>(value: T) -> Vec<u8> {
    bytemuck::bytes_of(&value).to_vec()
}

impl Distribution<u32> for Bits {
    fn kernel(&self, _: u64) -> Result<RandomKernel> {
        let text = || text::kernel("bits_u32", "u32", Grouping::Fours, "", &each_word("W"));
        Ok(RandomKernel::new(("rand.bits", "bits_u32"), Grouping::Fours, text, Vec::new()))
    }
}

impl Distribution<u64> for Bits {
    fn kernel(&self, _: u64) -> Result<RandomKernel> {
        let text =
            || text::kernel("bits_u64", "u64", Grouping::Twos, "", &each_pair("u64(L) | u64(H) << 32"));
        Ok(RandomKernel::new(("rand.bits", "bits_u64"), Grouping::Twos, text, Vec::new()))
    }
}

impl Distribution<f32> for Uniform {
    fn kernel(&self, _: u64) -> Result<RandomKernel> {
        let text = || text::kernel("uniform_f32", "f32", Grouping::Fours, "", &each_word(UNIFORM_F32));
        Ok(RandomKernel::new(("rand.uniform", "uniform_f32"), Grouping::Fours, text, Vec::new()))
    }
}

impl Distribution<f64> for Uniform {
    fn kernel(&self, _: u64) -> Result<RandomKernel> {
        let text = || text::kernel("uniform_f64", "f64", Grouping::Doubles, "", &each_pair(UNIFORM_F64));
        Ok(RandomKernel::new(("rand.uniform", "uniform_f64"), Grouping::Doubles, text, Vec::new()))
    }
}

/// Mean and deviation as arguments.
fn checked<T: Element + Into<f64> + std::fmt::Display>(
    operation: &'static str,
    mean: T,
    deviation: T,
) -> Result<Vec<Vec<u8>>> {
    let (m, d): (f64, f64) = (mean.into(), deviation.into());
    if m.is_finite() && d.is_finite() && d >= 0.0 {
        return Ok(vec![bytes(mean), bytes(deviation)]);
    }
    let what = format!("a mean of {mean} and a deviation of {deviation}");
    Err(LibraryError::argument(operation, what, "give finite numbers, and a deviation of zero or more"))
}

macro_rules! normal {
    ($($distribution:ident $operation:literal, $float:ident, $name:literal, $grouping:ident, $body:ident, $value:literal;)*) => {$(
        impl Distribution<$float> for $distribution<$float> {
            fn kernel(&self, _: u64) -> Result<RandomKernel> {
                let values = checked($operation, self.mean, self.deviation)?;
                let text = || {
                    let parameters = concat!(", mean: ", stringify!($float), ", deviation: ", stringify!($float));
                    text::kernel($name, stringify!($float), Grouping::$grouping, parameters, &text::$body($value))
                };
                Ok(RandomKernel::new(($operation, $name), Grouping::$grouping, text, values))
            }
        }
    )*};
}

normal! {
    Normal "rand.normal", f32, "normal_f32", Fours, normal_f32, "mean + deviation * V";
    Normal "rand.normal", f64, "normal_f64", Doubles, normal_f64, "mean + deviation * V";
    LogNormal "rand.log_normal", f32, "log_normal_f32", Fours, normal_f32, "exp(mean + deviation * V)";
    LogNormal "rand.log_normal", f64, "log_normal_f64", Doubles, normal_f64, "exp(mean + deviation * V)";
}

impl Distribution<u8> for Bernoulli {
    fn kernel(&self, _: u64) -> Result<RandomKernel> {
        if !(0.0..=1.0).contains(&self.probability) {
            let what = format!("a probability of {}", self.probability);
            return Err(LibraryError::argument("rand.bernoulli", what, "give a number from 0 to 1"));
        }
        let threshold = (self.probability * 4_294_967_296.0).round() as u64;
        let text = || {
            let body = each_word("u8(u64(W) < threshold)");
            text::kernel("bernoulli_u8", "u8", Grouping::Fours, ", threshold: u64", &body)
        };
        Ok(RandomKernel::new(
            ("rand.bernoulli", "bernoulli_u8"),
            Grouping::Fours,
            text,
            vec![bytes(threshold)],
        ))
    }
}

macro_rules! integers {
    ($($integer:ident, $name:literal, $grouping:ident, $body:ident;)*) => {$(
        impl Distribution<$integer> for Integers<$integer> {
            fn kernel(&self, _: u64) -> Result<RandomKernel> {
                if self.first > self.last {
                    let what = format!("a range from {} to {}", self.first, self.last);
                    return Err(LibraryError::argument("rand.integers", what, "give the smaller one first"));
                }
                // All values of 64 bits are one more than fit, which the kernel knows as 0.
                let count = (i128::from(self.last) - i128::from(self.first) + 1) as u64;
                let text = || {
                    let parameters = concat!(", low_end: ", stringify!($integer), ", count: u64");
                    text::kernel($name, stringify!($integer), Grouping::$grouping, parameters, &$body(stringify!($integer)))
                };
                let values = vec![bytes(self.first), bytes(count)];
                Ok(RandomKernel::new(("rand.integers", $name), Grouping::$grouping, text, values))
            }
        }
    )*};
}

integers! {
    u32, "integers_u32", Twos, integers_32;
    i32, "integers_i32", Twos, integers_32;
    u64, "integers_u64", Ones, integers_64;
    i64, "integers_i64", Ones, integers_64;
}

/// Half of the bits that a network needs for so many values, at least one.
fn half_bits(elements: u64) -> u32 {
    let bits = u64::BITS - elements.saturating_sub(1).leading_zeros();
    bits.div_ceil(2).max(1)
}

impl Distribution<u32> for Permutation {
    fn kernel(&self, elements: u64) -> Result<RandomKernel> {
        if elements > 1 << 32 {
            let what = format!("a permutation of {elements} values in elements of 32 bits");
            return Err(LibraryError::argument("rand.permutation", what, "use a buffer of u64"));
        }
        let text = || text::permutation("permutation_u32", "u32");
        Ok(RandomKernel::new(
            ("rand.permutation", "permutation_u32"),
            Grouping::Ones,
            text,
            vec![bytes(half_bits(elements))],
        ))
    }
}

impl Distribution<u64> for Permutation {
    fn kernel(&self, elements: u64) -> Result<RandomKernel> {
        let text = || text::permutation("permutation_u64", "u64");
        Ok(RandomKernel::new(
            ("rand.permutation", "permutation_u64"),
            Grouping::Ones,
            text,
            vec![bytes(half_bits(elements))],
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::half_bits;

    #[test]
    fn a_network_is_as_wide_as_it_must_be() {
        let wide = |elements: u64| 1_u128 << (2 * half_bits(elements));
        for elements in [1, 2, 4, 5, 16, 17, 1 << 32, (1 << 32) + 1, u64::MAX] {
            assert!(wide(elements) >= u128::from(elements), "{elements}");
            assert!(half_bits(elements) == 1 || wide(elements) < 4 * u128::from(elements), "{elements}");
        }
    }
}
