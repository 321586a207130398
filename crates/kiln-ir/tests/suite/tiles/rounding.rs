//! How sums are rounded: what is the same bit for bit, and how far tensor cores may be off.

use super::{FACTORS, Product, all_layouts, bytes_of, numbers_of, small_integers};
use crate::generate::Random;
use crate::rig::compare::same_elements;
use kiln_ir::{Literal, Type};

/// Numbers that a type has, of very different sizes.
fn random_numbers(ty: Type, seed: u64) -> impl FnMut() -> f64 {
    let mut random = Random::new(seed);
    move || {
        let fraction = random.below(1 << 20) as f64 / f64::from(1 << 20) - 0.5;
        let value = fraction * 2f64.powi(random.below(13) as i32 - 6);
        match ty {
            Type::I8 => random.below(256) as f64 - 128.0,
            // The numbers of the sum are halves, too; so they are what they seem.
            _ => Literal::float(Type::Bf16, Literal::float(Type::F16, value).as_float()).as_float(),
        }
    }
}

#[test]
fn sums_are_within_the_tolerance_and_the_same_where_no_tensor_core_adds() {
    for (ty, sum, step) in FACTORS {
        for (seed, is_shared) in [(11, false), (12, true), (13, true)] {
            let depth = 4 * step;
            let product =
                Product { is_shared, ..Product::new((ty, sum), [32, 16, depth], random_numbers(ty, seed)) };
            let interpreted = product.interpreted();
            assert_eq!(product.simulated(70), interpreted, "{ty} as sm_70");
            let cores = product.simulated(90);
            if matches!(ty, Type::I8 | Type::F64) {
                assert_eq!(cores, interpreted, "{ty} as sm_90");
                continue;
            }
            let mut differ = 0;
            for (who, found) in [("interpreted", &interpreted), ("sm_90", &cores)] {
                for (found, (exact, size)) in numbers_of(sum, found).into_iter().zip(product.exact()) {
                    let tolerance = (depth as f64 + 2.0) * 2f64.powi(-22) * size;
                    assert!((found - exact).abs() <= tolerance, "{ty} {who}: {found}, not {exact}");
                    differ += usize::from(found != exact);
                }
            }
            assert!(differ > 0, "{ty}: every sum is exact, which shows nothing");
        }
    }
}

#[test]
fn sums_of_bytes_wrap() {
    let mut product = Product::new((Type::I8, Type::I32), [16, 8, 32], || -128.0);
    product.c.values.fill(f64::from(i32::MAX));
    let wrapped = f64::from(i32::MAX.wrapping_add(128 * 128 * 32));
    assert_eq!(numbers_of(Type::I32, &product.interpreted()), vec![wrapped; 128]);
    for number in [70, 80, 90] {
        assert_eq!(product.simulated(number), product.interpreted(), "sm_{number}");
    }
}

#[test]
fn singles_are_rounded_to_ten_bits_of_fraction() {
    let unit = 2f64.powi(-10);
    // Below half a unit, half a unit, just above it, and half a unit from an odd number: ties go away from zero.
    let cases = [
        (1.0 + 0.49 * unit, 1.0),
        (1.0 + 0.5 * unit, 1.0 + unit),
        (-1.0 - 0.5 * unit, -1.0 - unit),
        (1.0 + 0.51 * unit, 1.0 + unit),
        (1.0 + 1.5 * unit, 1.0 + 2.0 * unit),
        (3.0e38, Literal::float(Type::F32, 3.0e38).as_float()),
        (1e-40, 1e-40),
    ];
    for (layouts, is_shared) in all_layouts().flat_map(|one| [(one, false), (one, true)]) {
        for (number, rounded) in cases {
            let mut product =
                Product { layouts, is_shared, ..Product::new((Type::F32, Type::F32), [16, 8, 8], || 0.0) };
            product.a.values[8 * 3 + 5] = number;
            product.b.values[8 * 5 + 6] = 1.0;
            let interpreted = product.interpreted();
            let found = numbers_of(Type::F32, &interpreted)[8 * 3 + 6];
            assert!((found - rounded).abs() <= unit * rounded.abs() / 2.0 + 1e-41, "{number}: {found}");
            if rounded.abs() < 4.0 && rounded.abs() > 0.5 {
                assert_eq!(found, rounded);
            }
            for target in [70, 80, 90] {
                assert_eq!(product.simulated(target), interpreted, "{number} as sm_{target}");
            }
        }
    }
}

#[test]
fn infinities_and_nan_are_what_a_sum_makes_of_them() {
    for (ty, sum, step) in FACTORS.into_iter().filter(|factor| factor.0 != Type::I8) {
        let mut product = Product::new((ty, sum), [16, 8, step], small_integers(3));
        product.c.values.fill(1.0);
        for (row, special) in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN].into_iter().enumerate() {
            product.a.values[row * step] = special;
        }
        product.b.values[..8].copy_from_slice(&[1.0, -1.0, 2.0, 0.0, 3.0, 1.0, 1.0, f64::NAN]);
        let interpreted = product.interpreted();
        let found = numbers_of(sum, &interpreted);
        assert_eq!(found[0], f64::INFINITY, "{ty}");
        assert_eq!(found[1], f64::NEG_INFINITY, "{ty}");
        assert!(found[3].is_nan() && found[2 * 8].is_nan() && found[7].is_nan(), "{ty}");
        for target in [70, 80, 90] {
            assert!(same_elements(sum, &product.simulated(target), &interpreted), "{ty} as sm_{target}");
        }
    }
}

#[test]
fn subnormals_are_kept_also_where_the_program_flushes_them() {
    for (ty, small) in [(Type::Bf16, 2f64.powi(-130)), (Type::F32, 2f64.powi(-130))] {
        let (_, sum, step) = FACTORS.into_iter().find(|factor| factor.0 == ty).unwrap();
        let mut product = Product::new((ty, sum), [16, 8, step], || 0.0);
        product.a.values[0] = small;
        product.b.values[0] = 2.0;
        let mut draft = product.program().into_draft();
        draft.flush = true;
        let program = kiln_ir::Program::new(draft).unwrap();
        let left = super::last_buffer(
            crate::rig::interpret(&program, &product.launch(), kiln_ir::ThreadOrder::Ascending).0,
        );
        assert_eq!(left[..4], bytes_of(Type::F32, 2.0 * small), "{ty}");
        for number in [70, 90] {
            let target = kiln_ir::PtxTarget::new(number).unwrap();
            let found = crate::rig::simulate(&program, &product.launch(), target, 0).unwrap();
            assert_eq!(super::last_buffer(found), left, "{ty} as sm_{number}");
        }
    }
}
