//! Convolutions and their gradients, against sums over all pixels in `f64`.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::dnn::{ConvolutionCall, Determinism, Dnn, Math, NetworkElement, Tensor};

use crate::numbers::{TestNumber, made_up};
use crate::rig::{everywhere, everywhere_and_in_workers};

/// A convolution as the tests describe it.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Images, channels, height, width.
    x: [usize; 4],
    /// Filters, height, width.
    w: [usize; 3],
    padding: [usize; 2],
    stride: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    order: Determinism,
}

impl Case {
    const fn new(x: [usize; 4], w: [usize; 3]) -> Self {
        let one = [1, 1];
        Self { x, w, padding: [0, 0], stride: one, dilation: one, groups: 1, order: Determinism::Any }
    }

    /// Dimensions of `x`, `w` and `y`.
    fn dimensions(&self) -> [[usize; 4]; 3] {
        let along = |at: usize| {
            let reach = (self.w[at + 1] - 1) * self.dilation[at] + 1;
            (self.x[at + 2] + 2 * self.padding[at] - reach) / self.stride[at] + 1
        };
        let [filters, height, width] = self.w;
        [self.x, [filters, self.x[1] / self.groups, height, width], [self.x[0], filters, along(0), along(1)]]
    }
}

const CASES: &[Case] = &[
    Case::new([1, 1, 1, 1], [1, 1, 1]),
    Case { padding: [1, 1], ..Case::new([2, 3, 8, 7], [4, 3, 3]) },
    Case {
        padding: [1, 2],
        stride: [2, 1],
        dilation: [1, 2],
        groups: 2,
        ..Case::new([2, 4, 9, 8], [6, 3, 2])
    },
    Case { padding: [1, 1], groups: 8, order: Determinism::RunToRun, ..Case::new([1, 8, 12, 12], [8, 3, 3]) },
    Case { stride: [2, 2], order: Determinism::RunToRun, ..Case::new([3, 16, 5, 5], [32, 1, 1]) },
    Case { padding: [1, 1], order: Determinism::RunToRun, ..Case::new([2, 32, 14, 14], [32, 3, 3]) },
];

/// A tensor in the order of its dimensions, on the host.
struct Host {
    dimensions: [usize; 4],
    values: Vec<f64>,
    /// With absolute values.
    sizes: Vec<f64>,
}

impl Host {
    fn zeros(dimensions: [usize; 4]) -> Self {
        let len = dimensions.iter().product();
        Self { dimensions, values: vec![0.0; len], sizes: vec![0.0; len] }
    }

    fn place(&self, [n, c, h, w]: [usize; 4]) -> usize {
        let [_, channels, height, width] = self.dimensions;
        ((n * channels + c) * height + h) * width + w
    }

    fn add(&mut self, place: [usize; 4], product: f64) {
        let at = self.place(place);
        self.values[at] += product;
        self.sizes[at] += product.abs();
    }
}

/// Elements in the order that they lie in memory, from or to the order of dimensions.
fn reordered<T: Copy>(values: &[T], [n, c, h, w]: [usize; 4], channels_last: bool, back: bool) -> Vec<T> {
    if !channels_last {
        return values.to_vec();
    }
    let mut found = values.to_vec();
    for (image, pixel, channel) in (0..n)
        .flat_map(|image| (0..h * w).map(move |pixel| (image, pixel)))
        .flat_map(|(image, pixel)| (0..c).map(move |channel| (image, pixel, channel)))
    {
        let (first, last) = ((image * c + channel) * h * w + pixel, (image * h * w + pixel) * c + channel);
        let (to, from) = if back { (first, last) } else { (last, first) };
        found[to] = values[from];
    }
    found
}

/// Each product of the definition: places in `x`, `w` and `y`.
fn products(case: &Case, mut product: impl FnMut([usize; 4], [usize; 4], [usize; 4])) {
    let [[images, _, rows, columns], [filters, channels, height, width], [_, _, out_rows, out_columns]] =
        case.dimensions();
    let pixel = |at: usize, position: usize, element: usize, size: usize| {
        let place =
            (position * case.stride[at] + element * case.dilation[at]) as i64 - case.padding[at] as i64;
        (0..size as i64).contains(&place).then_some(place as usize)
    };
    for place in 0..images * filters * out_rows * out_columns {
        let (rest, q) = (place / out_columns, place % out_columns);
        let (rest, p) = (rest / out_rows, rest % out_rows);
        let (n, k) = (rest / filters, rest % filters);
        for r in 0..height {
            for s in 0..width {
                let (Some(h), Some(w)) = (pixel(0, p, r, rows), pixel(1, q, s, columns)) else { continue };
                for c in 0..channels {
                    let channel = k / (filters / case.groups) * channels + c;
                    product([n, channel, h, w], [k, c, r, s], [n, k, p, q]);
                }
            }
        }
    }
}

/// What to compare in a case: which of `x`, `w` and `y` is computed.
const PASSES: [usize; 3] = [2, 0, 1];

/// Runs one pass, and returns what is wrong with it.
fn pass<T: TestNumber + NetworkElement>(
    gpu: &DeviceRuntime,
    case: &Case,
    result: usize,
    math: Math,
    channels_last: bool,
) -> Option<String> {
    let dnn = Dnn::new(gpu);
    let dimensions = case.dimensions();
    let inputs: [Vec<T>; 3] =
        [0, 1, 2].map(|at: usize| made_up::<T>(20 + at as u64, dimensions[at].iter().product()));
    let mut exact = Host::zeros(dimensions[result]);
    let tensors = dimensions.map(Host::zeros);
    let number = |at: usize, place: [usize; 4]| inputs[at][tensors[at].place(place)].number();
    products(case, |x, w, y| match result {
        2 => exact.add(y, number(0, x) * number(1, w)),
        0 => exact.add(x, number(2, y) * number(1, w)),
        _ => exact.add(w, number(0, x) * number(2, y)),
    });
    let stored = |at: usize| reordered(&inputs[at], dimensions[at], channels_last, false);
    let buffers = [0, 1, 2].map(|at| gpu.upload(&stored(at)).unwrap());
    let tensor = |at: usize| {
        let tensor = Tensor::new(&buffers[at], dimensions[at]);
        if channels_last { tensor.channels_last() } else { tensor }
    };
    let (x, w, y) = (tensor(0), tensor(1), tensor(2));
    let call = || {
        let call: ConvolutionCall<'_, T> = match result {
            2 => dnn.convolution(x, w, y),
            0 => dnn.convolution_backward_data(y, w, x),
            _ => dnn.convolution_backward_filter(x, y, w),
        };
        let call = call.padding(case.padding).stride(case.stride).dilation(case.dilation);
        call.groups(case.groups).math(math).determinism(case.order)
    };
    let operation = call().operation().unwrap();
    let tolerance = Tolerance::of(&operation);
    if let Err(error) = call().submit() {
        return Some(format!("{error}"));
    }
    let found = reordered(&buffers[result].download().unwrap(), dimensions[result], channels_last, true);
    found.iter().enumerate().find_map(|(at, found)| {
        let (found, wanted) = (found.number(), exact.values[at]);
        let bound = tolerance.bound(exact.sizes[at], wanted);
        let is_close = (found - wanted).abs() <= bound;
        (!is_close).then(|| format!("{operation}: element {at} is {found}, not {wanted} within {bound:e}"))
    })
}

/// Runs cases in both layouts. All that is wrong is told at once.
fn compare<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime, cases: &[Case], math: Math) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in cases {
        for result in PASSES {
            for channels_last in [false, true] {
                wrong.extend(pass::<T>(gpu, case, result, math, channels_last));
            }
        }
    }
    wrong
}

fn none_is_wrong(wrong: &[String]) {
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn convolutions_and_gradients_of_f32_are_sums_over_all_pixels() {
    everywhere("convolutions_and_gradients_of_f32_are_sums_over_all_pixels", |gpu| {
        none_is_wrong(&compare::<f32>(gpu, CASES, Math::Ieee));
    });
}

#[test]
fn convolutions_and_gradients_of_f32_with_tf32_are_close_to_sums() {
    everywhere("convolutions_and_gradients_of_f32_with_tf32_are_close_to_sums", |gpu| {
        none_is_wrong(&compare::<f32>(gpu, CASES, Math::Tf32));
    });
}

#[test]
fn convolutions_and_gradients_of_f16_are_sums_over_all_pixels() {
    everywhere("convolutions_and_gradients_of_f16_are_sums_over_all_pixels", |gpu| {
        none_is_wrong(&compare::<f16>(gpu, CASES, Math::Ieee));
    });
}

#[test]
fn convolutions_and_gradients_of_bf16_are_sums_over_all_pixels() {
    everywhere("convolutions_and_gradients_of_bf16_are_sums_over_all_pixels", |gpu| {
        none_is_wrong(&compare::<bf16>(gpu, CASES, Math::Ieee));
    });
}

#[test]
fn convolutions_run_in_a_worker() {
    everywhere_and_in_workers("convolutions_run_in_a_worker", |gpu| {
        let mut wrong = compare::<f32>(gpu, &CASES[4..5], Math::Ieee);
        wrong.extend(compare::<bf16>(gpu, &CASES[4..5], Math::Ieee));
        none_is_wrong(&wrong);
    });
}

#[test]
fn equal_convolutions_give_equal_bits_on_every_stream() {
    everywhere("equal_convolutions_give_equal_bits_on_every_stream", |gpu| {
        let dnn = Dnn::new(gpu);
        let (x, dy) = ([4, 16, 20, 20], [4, 16, 20, 20]);
        let images = gpu.upload(&made_up::<f32>(30, 4 * 16 * 400)).unwrap();
        let gradient = gpu.upload(&made_up::<f32>(31, 4 * 16 * 400)).unwrap();
        let streams: Vec<_> = (0..4).map(|_| gpu.stream().unwrap()).collect();
        let results: Vec<_> = (0..8).map(|_| gpu.allocate::<f32>(16 * 16 * 9).unwrap()).collect();
        for (turn, result) in results.iter().enumerate() {
            let dw = Tensor::new(result, [16, 16, 3, 3]);
            let call =
                dnn.convolution_backward_filter(Tensor::new(&images, x), Tensor::new(&gradient, dy), dw);
            let call = call.padding([1, 1]).determinism(Determinism::RunToRun);
            call.on(&streams[turn % 4]).submit().unwrap();
        }
        let first = results[0].download().unwrap();
        assert!(results.iter().all(|result| result.download().unwrap() == first));
    });
}

#[test]
fn a_convolution_is_replayed_in_a_graph() {
    everywhere_and_in_workers("a_convolution_is_replayed_in_a_graph", |gpu| {
        let dnn = Dnn::new(gpu);
        let x = gpu.upload(&[1.0_f32, 2.0, 3.0, 4.0]).unwrap();
        let w = gpu.upload(&[1.0_f32, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
        let (y, z) = (gpu.allocate::<f32>(4).unwrap(), gpu.allocate::<f32>(4).unwrap());
        let [x_tensor, y_tensor, z_tensor] = [&x, &y, &z].map(|buffer| Tensor::new(buffer, [1, 1, 2, 2]));
        let filter = Tensor::new(&w, [1, 1, 3, 3]);
        let mut graph = gpu.graph();
        dnn.convolution(x_tensor, filter, y_tensor).padding([1, 1]).record(&mut graph).unwrap();
        dnn.convolution(y_tensor, filter, z_tensor).padding([1, 1]).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        assert_eq!((y.download().unwrap(), z.download().unwrap()), (vec![10.0; 4], vec![40.0; 4]));
        x.upload(&[0.0, 0.0, 0.0, 1.0]).unwrap();
        graph.replay().unwrap();
        assert_eq!(z.download().unwrap(), [4.0; 4]);
    });
}
