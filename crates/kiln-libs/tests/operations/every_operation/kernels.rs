//! Elements, random numbers and primitives, which are kernels of kiln.

use kiln::GpuRef;
use kiln::buffer::Element;
use kiln_libs::elementwise::{Combination, ElementFunction, Elementwise};
use kiln_libs::prims::{Predicate, Primitives, ReduceOperator, ScanOperator};
use kiln_libs::rand::{Bits, Philox, Sampler};

use super::{A, Row, down, exact, out, up};

fn integers<T: Element + Into<f64>>(buffer: &GpuRef<T>) -> Vec<f64> {
    buffer.download().unwrap().into_iter().map(Into::into).collect()
}

fn count(buffer: &GpuRef<u64>) -> f64 {
    buffer.download().unwrap()[0] as f64
}

pub(super) fn kernels() -> Vec<Row> {
    [elements(), primitives()].into_iter().flatten().collect()
}

fn elements() -> Vec<Row> {
    vec![
        Row {
            call: "elementwise.apply",
            run: |gpu| {
                let (x, y, elements) = (up(gpu, &[-1.0_f32, 2.0]), out(gpu, 2), Elementwise::new(gpu));
                drop(elements.apply(ElementFunction::Relu, &x, &y).submit().unwrap());
                exact(&down(&y), &[0.0, 2.0])
            },
        },
        Row {
            call: "elementwise.apply_backward",
            run: |gpu| {
                let (x, dy, dx) = (up(gpu, &[-1.0_f32, 2.0]), up(gpu, &[5.0_f32, 7.0]), out(gpu, 2));
                drop(
                    Elementwise::new(gpu)
                        .apply_backward(ElementFunction::Relu, &x, &dy, &dx)
                        .submit()
                        .unwrap(),
                );
                exact(&down(&dx), &[0.0, 7.0])
            },
        },
        Row {
            call: "elementwise.combine",
            run: |gpu| {
                let (a, b, c) = (up(gpu, &A), up(gpu, &[10.0_f32; 4]), out(gpu, 4));
                drop(Elementwise::new(gpu).combine(Combination::Add, &a, &b, &c).submit().unwrap());
                exact(&down(&c), &[11.0, 12.0, 13.0, 14.0])
            },
        },
        Row {
            call: "elementwise.affine",
            run: |gpu| {
                let (x, y) = (up(gpu, &A), out(gpu, 4));
                drop(Elementwise::new(gpu).affine(2.0, &x, 1.0, &y).submit().unwrap());
                exact(&down(&y), &[3.0, 5.0, 7.0, 9.0])
            },
        },
        Row {
            call: "elementwise.cast",
            run: |gpu| {
                let (x, y) = (up(gpu, &[-1.5_f32, 2.5]), up(gpu, &[0_i32; 2]));
                drop(Elementwise::new(gpu).cast(&x, &y).submit().unwrap());
                exact(&integers(&y), &[-1.0, 2.0])
            },
        },
        Row {
            call: "rand.draw",
            run: |gpu| {
                let words = up(gpu, &[0_u32; 4]);
                drop(Sampler::new(gpu).draw(7).fill(&words, Bits).unwrap());
                let wanted: Vec<f64> = (0..4).map(|at| f64::from(Philox::new(7).u32(at))).collect();
                exact(&integers(&words), &wanted)
            },
        },
    ]
}

fn primitives() -> Vec<Row> {
    vec![
        Row {
            call: "prims.reduce",
            run: |gpu| {
                let (x, one) = (up(gpu, &[3_u32, 1, 2]), up(gpu, &[0_u32]));
                drop(Primitives::new(gpu).reduce(&x, ReduceOperator::Sum, &one).submit().unwrap());
                exact(&integers(&one), &[6.0])
            },
        },
        Row {
            call: "prims.scan_inclusive",
            run: |gpu| {
                let (x, y) = (up(gpu, &[3_u32, 1, 2]), up(gpu, &[0_u32; 3]));
                drop(Primitives::new(gpu).scan_inclusive(&x, ScanOperator::Sum, &y).submit().unwrap());
                exact(&integers(&y), &[3.0, 4.0, 6.0])
            },
        },
        Row {
            call: "prims.sort",
            run: |gpu| {
                let (x, y) = (up(gpu, &[3_u32, 1, 2]), up(gpu, &[0_u32; 3]));
                drop(Primitives::new(gpu).sort(&x, &y).submit().unwrap());
                exact(&integers(&y), &[1.0, 2.0, 3.0])
            },
        },
        Row {
            call: "prims.select",
            run: |gpu| {
                let (x, y, kept) = (up(gpu, &[3_u32, 1, 2]), up(gpu, &[0_u32; 3]), up(gpu, &[9_u64]));
                drop(Primitives::new(gpu).select(&x, Predicate::Less(3), &y, &kept).submit().unwrap());
                exact(&[integers(&y)[0], integers(&y)[1], count(&kept)], &[1.0, 2.0, 2.0])
            },
        },
        Row {
            call: "prims.histogram",
            run: |gpu| {
                let (x, bins) = (up(gpu, &[0.5_f32, 1.5, 1.6]), up(gpu, &[9_u64; 2]));
                drop(Primitives::new(gpu).histogram(&x, 0.0..2.0, &bins).submit().unwrap());
                exact(&[count(&bins), bins.download().unwrap()[1] as f64], &[1.0, 2.0])
            },
        },
    ]
}
