//! Products of `i8`: sums, factors and results are integers of 32 bits that wrap, on every device.

use kiln_libs::blas::{Blas, Matrix};

use crate::rig::everywhere;

/// Columns of the left factor, whose products add up past 2^31.
const LONG: usize = 131_072 + 16;

/// `alpha a b + beta c` of a row and a column, modulo 2^32 at every step.
fn wrapping(a: &[i8], b: &[i8], alpha: i32, beta: i32, c: i32) -> i32 {
    let terms = a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b));
    let sum = terms.fold(0_i32, i32::wrapping_add);
    alpha.wrapping_mul(sum).wrapping_add(beta.wrapping_mul(c))
}

#[test]
fn sums_of_products_wrap_at_32_bits() {
    everywhere("sums_of_products_wrap_at_32_bits", |gpu| {
        let blas = Blas::new(gpu);
        let least = vec![i8::MIN; 16 * LONG];
        let (a, c) = (gpu.upload(&least).unwrap(), gpu.zeros::<i32>(256).unwrap());
        let matrix = |k| Matrix::new(&a, 16, k);
        // 2^31 is one more than the greatest number: it becomes the least one.
        for (k, wanted) in [(131_056, i32::MAX - 262_143), (131_072, i32::MIN), (131_088, i32::MIN + 262_144)]
        {
            blas.matmul(matrix(k), matrix(k).transposed(), Matrix::new(&c, 16, 16)).submit().unwrap();
            assert_eq!(c.download().unwrap(), [wanted; 256], "{k} terms");
            assert_eq!(wrapping(&least[..k], &least[..k], 1, 0, 0), wanted);
        }
    });
}

/// Every element of 8 bits is aligned for itself, and not for the library.
#[test]
fn a_view_that_begins_at_an_odd_byte_is_told_with_its_place() {
    let gpu = kiln::DeviceRuntime::simulated(1).unwrap();
    let (blas, a, c) = (Blas::new(&gpu), gpu.zeros::<i8>(600).unwrap(), gpu.zeros::<i32>(256).unwrap());
    let odd = a.view(3..).unwrap().view(4..).unwrap();
    let (whole, shown, result) =
        (Matrix::new(&a, 16, 16), Matrix::new(&odd, 16, 16), Matrix::new(&c, 16, 16));
    let error = blas.matmul(shown, whole.transposed(), result).submit().unwrap_err().to_string();
    let wanted = "blas.matmul: `a` does not begin at a multiple of 4 bytes: it begins at byte 7 of its buffer, at the address 0x";
    assert!(error.starts_with(wanted), "{error}");
    assert!(
        error.ends_with("; begin the view at such a byte, or copy it to the start of another buffer"),
        "{error}"
    );
    let error = blas.matmul(whole, shown.transposed(), result).submit().unwrap_err().to_string();
    assert!(
        error.starts_with("blas.matmul: `b` does not begin at a multiple of 4 bytes: it begins at byte 7"),
        "{error}"
    );
    // What the text says does.
    let even = a.view(8..).unwrap();
    blas.matmul(Matrix::new(&even, 16, 16), whole.transposed(), result).submit().unwrap().wait().unwrap();
    let copy = gpu.zeros::<i8>(256).unwrap();
    copy.copy_from(&odd.view(..256).unwrap()).unwrap();
    blas.matmul(Matrix::new(&copy, 16, 16), whole.transposed(), result).submit().unwrap().wait().unwrap();
}

#[test]
fn factors_of_integer_products_wrap_at_32_bits() {
    everywhere("factors_of_integer_products_wrap_at_32_bits", |gpu| {
        let blas = Blas::new(gpu);
        let values: Vec<i8> = (0..16 * 1024_i32).map(|at| (at * 89 % 251 - 125) as i8).collect();
        let (a, before) = (gpu.upload(&values).unwrap(), [i32::MAX, i32::MIN, -3, 1_000_003]);
        let before: Vec<i32> = before.into_iter().cycle().take(256).collect();
        let matrix = Matrix::new(&a, 16, 1024);
        for (alpha, beta) in [(1, 1), (i32::MAX, 0), (i32::MIN, 1), (1_000_003, -1_000_003), (-7, i32::MAX)] {
            let c = gpu.upload(&before).unwrap();
            let product = blas.matmul(matrix, matrix.transposed(), Matrix::new(&c, 16, 16));
            product.alpha(f64::from(alpha)).beta(f64::from(beta)).submit().unwrap();
            let wanted: Vec<i32> = (0..256)
                .map(|at| {
                    let (row, column) =
                        (&values[at / 16 * 1024..][..1024], &values[at % 16 * 1024..][..1024]);
                    wrapping(row, column, alpha, beta, before[at])
                })
                .collect();
            assert_eq!(c.download().unwrap(), wanted, "{alpha} and {beta}");
        }
    });
}
