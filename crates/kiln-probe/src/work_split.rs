//! Work split by weight.
//!
//! The method of largest remainders: each gets the whole part of its exact share, and what is left over goes,
//! one each, to those whose share was cut most. The parts cover the work exactly, differ from the exact share by
//! less than one, and depend on nothing but the numbers.

use std::ops::Range;

/// Splits `0..n` into one consecutive range per weight, in the order of the weights.
///
/// A weight of zero gets nothing, unless all are zero; then all get the same. No weights, no ranges.
///
/// ```
/// use kiln::probe::split_by_weight;
///
/// assert_eq!(split_by_weight(10, &[3, 1, 1]), [0..6, 6..8, 8..10]);
/// assert_eq!(split_by_weight(2, &[1, 1, 1]), [0..1, 1..2, 2..2]);
/// assert_eq!(split_by_weight(5, &[0, 0]), [0..3, 3..5]);
/// ```
pub fn split_by_weight(n: u64, weights: &[u64]) -> Vec<Range<u64>> {
    let ones = vec![1; weights.len()];
    let weights = if weights.iter().all(|weight| *weight == 0) { &ones } else { weights };
    let total: u128 = weights.iter().copied().map(u128::from).sum();
    let exact = |weight: u64| u128::from(n) * u128::from(weight);
    let mut counts: Vec<u64> = weights.iter().map(|weight| whole(exact(*weight) / total.max(1))).collect();

    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    // The sort is stable, so that equal remainders go to the earlier weight.
    by_remainder.sort_by_key(|at| std::cmp::Reverse(exact(weights[*at]) % total.max(1)));
    let left_over = n - counts.iter().sum::<u64>();
    for at in by_remainder.into_iter().take(usize::try_from(left_over).unwrap_or(usize::MAX)) {
        counts[at] += 1;
    }

    let mut end = 0;
    let consecutive = |count| {
        let start = end;
        end += count;
        start..end
    };
    counts.into_iter().map(consecutive).collect()
}

/// A share of `n` never exceeds `n`, so it fits.
fn whole(share: u128) -> u64 {
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_cover_is_exact_and_each_part_is_its_share_rounded(
            n in prop_oneof![0u64..100, Just(u64::MAX), any::<u64>()],
            weights in prop::collection::vec(prop_oneof![0u64..10, Just(u64::MAX), any::<u64>()], 1..20),
        ) {
            let parts = split_by_weight(n, &weights);
            prop_assert_eq!(parts.len(), weights.len());
            let mut next = 0;
            for part in &parts {
                prop_assert_eq!(part.start, next);
                prop_assert!(part.end >= part.start);
                next = part.end;
            }
            prop_assert_eq!(next, n);
            let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
            for (part, weight) in parts.iter().zip(&weights) {
                let exact = u128::from(n) * u128::from(*weight);
                // Without any weight there is no exact share.
                let Some(whole) = exact.checked_div(total) else { continue };
                let count = u128::from(part.end - part.start);
                prop_assert!(count == whole || count == whole + 1 && exact % total != 0);
            }
        }

        #[test]
        fn a_larger_weight_never_gets_less(n in 0u64..10_000, weights in prop::collection::vec(0u64..1000, 2..10)) {
            let parts = split_by_weight(n, &weights);
            for a in 0..weights.len() {
                for b in 0..weights.len() {
                    if weights[a] > weights[b] {
                        let count = |at: usize| parts[at].end - parts[at].start;
                        prop_assert!(count(a) >= count(b));
                    }
                }
            }
        }
    }

    #[test]
    fn no_workers_get_no_ranges() {
        assert!(split_by_weight(10, &[]).is_empty());
    }
}
