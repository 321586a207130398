//! `exp`, GELU and roots of unity with the same bits on every machine.

use std::f64::consts::{FRAC_2_PI, LN_2, PI};

use super::number::power_of_two;

/// `ln 2` with zeros in its lower half, and what is missing.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Terms of a series that leave an error below half a unit in the last place.
const TERMS: i32 = 22;

/// `e^x`, to about one unit in the last place.
pub(super) fn exp(x: f64) -> f64 {
    if x.is_nan() || x > 709.0 {
        return if x > 709.0 { f64::INFINITY } else { x };
    }
    if x < -708.0 {
        return 0.0;
    }
    let halvings = (x / LN_2).round_ties_even();
    let rest = (x - halvings * LN_2_HIGH) - halvings * LN_2_LOW;
    let series = (1..=TERMS).rev().fold(1.0, |sum, term| 1.0 + rest / f64::from(term) * sum);
    series * power_of_two(halvings as i32)
}

/// `x / 2 (1 + tanh(√(2/π) (x + 0.044715 x³)))`.
pub(super) fn gelu(x: f64) -> f64 {
    let inner = FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x);
    // 1 + tanh(t) = 2 / (1 + e^-2t)
    if x == f64::NEG_INFINITY { 0.0 } else { x / (1.0 + exp(-2.0 * inner)) }
}

/// Cosine and sine of `2π numerator / denominator`.
pub(super) fn unit_root(numerator: u64, denominator: u64) -> (f64, f64) {
    let turn = u128::from(denominator);
    // Eighths of a turn, and what is beyond, as a fraction of a turn times eight.
    let eighths = u128::from(numerator) % turn * 8;
    let (octant, beyond) = (eighths / turn, eighths % turn);
    let is_odd = octant % 2 == 1;
    let beyond = if is_odd { turn - beyond } else { beyond };
    let (cosine, sine) = first_octant(beyond as f64 / turn as f64 * (PI / 4.0));
    match octant {
        0 => (cosine, sine),
        1 => (sine, cosine),
        2 => (-sine, cosine),
        3 => (-cosine, sine),
        4 => (-cosine, -sine),
        5 => (-sine, -cosine),
        6 => (sine, -cosine),
        _ => (cosine, -sine),
    }
}

/// Cosine and sine of an angle from 0 to π/4, by their series.
fn first_octant(angle: f64) -> (f64, f64) {
    let square = angle * angle;
    let series = |first: i32| {
        (0..10).rev().fold(1.0, |sum, at| {
            let factor = f64::from((2 * at + first) * (2 * at + first + 1));
            1.0 - square / factor * sum
        })
    };
    (series(1), angle * series(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_unity_are_those_of_the_system() {
        for denominator in [1_u64, 2, 3, 4, 5, 7, 8, 12, 100, 1 << 20, (1 << 40) + 15] {
            for numerator in (0..50).map(|at| at * denominator.div_ceil(50)).chain([denominator - 1]) {
                let (cosine, sine) = unit_root(numerator, denominator);
                let angle = 2.0 * PI * (numerator % denominator) as f64 / denominator as f64;
                assert!((cosine - angle.cos()).abs() < 3e-15, "{numerator}/{denominator}: {cosine}");
                assert!((sine - angle.sin()).abs() < 3e-15, "{numerator}/{denominator}: {sine}");
            }
        }
        assert_eq!(unit_root(1, 4), (0.0, 1.0));
        assert_eq!(unit_root(3, 6), (-1.0, 0.0));
    }

    #[test]
    fn the_exponential_function_is_that_of_the_system() {
        for at in -7000..7000 {
            let x = f64::from(at) / 10.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-15, "{x}");
        }
        assert_eq!((exp(f64::INFINITY), exp(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
        assert!(exp(f64::NAN).is_nan());
    }

    #[test]
    fn gelu_is_its_formula() {
        for at in -80..80 {
            let x = f64::from(at) / 8.0;
            let tanh = ((2.0 / PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh();
            assert!((gelu(x) - x / 2.0 * (1.0 + tanh)).abs() < 1e-14, "{x}");
        }
        assert_eq!((gelu(f64::INFINITY), gelu(f64::NEG_INFINITY)), (f64::INFINITY, 0.0));
        assert!(gelu(f64::NAN).is_nan());
    }
}
