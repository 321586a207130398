//! All kernels, by topic.

mod bigint;
mod bits;
mod compute_bound;
mod control;
mod convert;
mod device_function;
mod elementwise;
mod graph_algorithms;
mod grid_sync;
mod half;
mod histogram;
mod math;
mod matrix;
mod memory_spaces;
mod neural;
mod printf;
mod reduce;
mod rounding;
mod scan;
mod sort;
mod stencil;
mod tensor_cores;
mod warp;

use std::sync::LazyLock;

use crate::case::Case;

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let topics: [&[Case]; 23] = [
        elementwise::CASES,
        reduce::CASES,
        scan::CASES,
        histogram::CASES,
        matrix::CASES,
        sort::CASES,
        neural::CASES,
        stencil::CASES,
        graph_algorithms::CASES,
        compute_bound::CASES,
        bigint::CASES,
        device_function::CASES,
        printf::CASES,
        grid_sync::CASES,
        half::CASES,
        rounding::CASES,
        convert::CASES,
        bits::CASES,
        warp::CASES,
        control::CASES,
        memory_spaces::CASES,
        math::CASES,
        tensor_cores::CASES,
    ];
    topics.concat()
});

/// All cases.
///
/// ```
/// let cases = kiln_kernels::cases();
/// assert!(cases.len() >= 60);
/// ```
pub fn cases() -> &'static [Case] {
    &CASES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_named_once_and_its_kernel_is_in_its_file() {
        let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
        for case in cases() {
            assert!(case.source.ptx.contains(&format!(".entry {}(", case.entry)), "{}", case.name);
        }
    }

    #[test]
    fn inputs_depend_on_the_seed_alone() {
        for case in cases() {
            assert_eq!(case.arguments(3).pack(&[]), case.arguments(3).pack(&[]));
            assert!(case.expected(&case.arguments(5)).compare(&case.expected(&case.arguments(5))).is_ok());
        }
    }
}
