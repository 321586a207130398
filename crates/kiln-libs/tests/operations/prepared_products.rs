//! Products that are checked once and queued with buffers of the moment.

use kiln::{DeviceRuntime, GpuRef};
use kiln_libs::blas::{Activation, Blas, F8E4M3, MatmulCall, Matrix};

use crate::rig::everywhere_and_in_workers;

fn matrix(by_columns: bool, buffer: &GpuRef<f32>, rows: usize, columns: usize) -> Matrix<'_, f32> {
    match by_columns {
        true => Matrix::new(buffer, columns, rows).transposed(),
        false => Matrix::new(buffer, rows, columns),
    }
}

/// 2 x 3 times 3 x 4; the bits of the layout say which are stored column after column.
fn shaped<'a>(
    blas: &'a Blas,
    layout: usize,
    bias: Option<&'a GpuRef<f32>>,
    [a, b, c]: [&'a GpuRef<f32>; 3],
) -> MatmulCall<'a, f32, f32> {
    let by_columns = |at: usize| layout >> at & 1 == 1;
    let (a, b) = (matrix(by_columns(0), a, 2, 3), matrix(by_columns(1), b, 3, 4));
    let call = blas.matmul(a, b, matrix(by_columns(2), c, 2, 4)).alpha(0.5).beta(2.0);
    match bias {
        Some(bias) => call.bias(bias).activation(Activation::Relu),
        None => call,
    }
}

/// 2 x 3 times 3 x 4, in all layouts, with other buffers than those it was prepared with: the same bits as the ordinary call gives.
#[test]
fn a_prepared_product_is_the_ordinary_one() {
    everywhere_and_in_workers("a_prepared_product_is_the_ordinary_one", |gpu| {
        let blas = Blas::new(gpu);
        let numbers = |len: usize, seed: usize| -> Vec<f32> {
            (0..len).map(|at| ((at * 7 + seed * 3) % 11) as f32 - 5.0).collect()
        };
        let bias = gpu.upload(&numbers(4, 9)).unwrap();
        for layout in 0..8 {
            let by_columns = |at: usize| layout >> at & 1 == 1;
            // A bias is for rows of a result that is stored row after row.
            for bias in [None, Some(&bias).filter(|_| !by_columns(2))] {
                let first = [6, 12, 8].map(|len| gpu.zeros::<f32>(len).unwrap());
                let prepared =
                    shaped(&blas, layout, bias, [&first[0], &first[1], &first[2]]).prepare().unwrap();
                for seed in 0..3_usize {
                    let new = |len: usize, at: usize| gpu.upload(&numbers(len, seed + at)).unwrap();
                    let (a, b, wanted, found) = (new(6, 1), new(12, 2), new(8, 3), new(8, 3));
                    shaped(&blas, layout, bias, [&a, &b, &wanted]).submit().unwrap();
                    prepared.submit(&a, &b, &found).unwrap();
                    assert_eq!(found.download().unwrap(), wanted.download().unwrap(), "{layout} {seed}");
                    let stream = gpu.stream().unwrap();
                    shaped(&blas, layout, bias, [&a, &b, &wanted]).submit().unwrap();
                    prepared.submit_on(&stream, &a, &b, &found).unwrap();
                    assert_eq!(found.download().unwrap(), wanted.download().unwrap(), "{layout} {seed}");
                }
            }
        }
    });
}

#[test]
fn other_lengths_and_alignments_are_taken_where_they_fit() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let blas = Blas::new(&gpu);
    let (data, c) = (gpu.upload(&[1.0_f32; 64]).unwrap(), gpu.zeros::<f32>(64).unwrap());
    let square = |buffer| Matrix::new(buffer, 2, 2);
    let prepared = blas.matmul(square(&data), square(&data), square(&c)).prepare().unwrap();
    // A view that begins at any element has another alignment than the buffers that it was prepared with.
    for at in [0, 1, 3, 4, 60] {
        let (part, result) = (data.view(at..).unwrap(), c.view(at..).unwrap());
        prepared.submit(&part, &data, &result).unwrap();
        assert_eq!(result.view(..4).unwrap().download().unwrap(), [2.0; 4]);
    }
}

#[test]
fn what_does_not_fit_is_told_as_by_the_ordinary_call() {
    let (gpu, other) = (DeviceRuntime::simulated(1).unwrap(), DeviceRuntime::simulated(2).unwrap());
    let blas = Blas::new(&gpu);
    let new = |gpu: &DeviceRuntime, len| gpu.upload(&vec![1.0_f32; len]).unwrap();
    let (a, b, c) = (new(&gpu, 6), new(&gpu, 12), new(&gpu, 8));
    let prepared =
        blas.matmul(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 4), Matrix::new(&c, 2, 4)).prepare().unwrap();
    let told =
        |a: &GpuRef<f32>, b: &GpuRef<f32>, c: &GpuRef<f32>| prepared.submit(a, b, c).unwrap_err().to_string();
    assert!(told(&new(&gpu, 5), &b, &c).contains("blas.matmul: `a` has 20 bytes and must have 24"));
    assert!(told(&a, &new(&gpu, 11), &c).contains("`b` has 44 bytes and must have 48"));
    assert!(told(&a, &b, &new(&gpu, 7)).contains("`c` has 28 bytes and must have 32"));
    assert!(told(&c, &b, &c).contains("`a` and `c` share memory"));
    for (name, text) in [
        ("a", told(&new(&other, 6), &b, &c)),
        ("b", told(&a, &new(&other, 12), &c)),
        ("c", told(&a, &b, &new(&other, 8))),
    ] {
        let wanted = format!("blas.matmul: `{name}`: ");
        assert!(text.starts_with(&wanted) && text.contains("belongs to another runtime"), "{text}");
    }
    assert_eq!(c.download().unwrap(), [1.0; 8], "nothing was queued");
    let short = a.view(..5).unwrap();
    let call = blas.matmul(Matrix::new(&short, 2, 3), Matrix::new(&b, 3, 4), Matrix::new(&c, 2, 4));
    assert!(call.prepare().unwrap_err().to_string().contains("`a` has 20 bytes"));
    let bias = c.view(4..).unwrap();
    let call = blas.matmul(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 4), Matrix::new(&b, 2, 4));
    assert!(call.prepare().unwrap_err().to_string().contains("share memory"));
    let spare = new(&gpu, 8);
    let call = blas.matmul(Matrix::new(&a, 2, 3), Matrix::new(&b, 3, 4), Matrix::new(&spare, 2, 4));
    let biased = call.bias(&bias).prepare().unwrap();
    assert!(biased.submit(&a, &b, &c).unwrap_err().to_string().contains("`c` and `bias` share memory"));
}

#[test]
fn products_without_terms_elements_or_a_factor_can_be_prepared() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (blas, x) = (Blas::new(&gpu), gpu.upload(&[1.0_f32; 4]).unwrap());
    let square = |buffer| Matrix::new(buffer, 2, 2);
    let c = gpu.upload(&[3.0_f32; 4]).unwrap();
    let zero = blas.matmul(square(&x), square(&x), square(&c)).alpha(0.0).beta(2.0).prepare().unwrap();
    zero.submit(&x, &x, &c).unwrap();
    assert_eq!(c.download().unwrap(), [6.0; 4]);
    let none = blas.matmul(Matrix::new(&x, 2, 0), Matrix::new(&x, 0, 2), square(&c)).prepare().unwrap();
    none.submit(&x, &x, &c).unwrap();
    assert_eq!(c.download().unwrap(), [0.0; 4]);
    let empty = Matrix::new(&c, 0, 2);
    let nothing = blas.matmul(Matrix::new(&x, 0, 2), square(&x), empty).prepare().unwrap();
    nothing.submit(&x, &x, &c).unwrap().wait().unwrap();
    let scales = [gpu.upload(&[2.0_f32]).unwrap(), gpu.upload(&[4.0_f32]).unwrap()];
    let ones = gpu.upload(&[F8E4M3(0x38); 256]).unwrap();
    let wide = gpu.zeros::<f32>(256).unwrap();
    let eights = Matrix::new(&ones, 16, 16);
    let call = blas.matmul(eights, eights.transposed(), Matrix::new(&wide, 16, 16));
    let scaled = call.scales(&scales[0], &scales[1]).prepare().unwrap();
    scaled.submit(&ones, &ones, &wide).unwrap();
    assert_eq!(wide.download().unwrap(), [128.0; 256]);
}
