//! Pooling and its gradients, against windows on the host.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::dnn::{Dnn, NetworkElement, Tensor};
use kiln_libs::{LibraryError, Tolerance};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::{everywhere, everywhere_and_in_workers};

#[derive(Clone, Copy, Debug)]
struct Case {
    x: [usize; 4],
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
}

const CASES: [Case; 5] = [
    Case { x: [1, 1, 1, 1], window: [1, 1], stride: [1, 1], padding: [0, 0] },
    Case { x: [2, 3, 8, 6], window: [2, 2], stride: [2, 2], padding: [0, 0] },
    Case { x: [2, 5, 9, 11], window: [3, 3], stride: [2, 2], padding: [1, 1] },
    Case { x: [1, 4, 10, 7], window: [4, 2], stride: [1, 3], padding: [2, 1] },
    Case { x: [3, 2, 6, 6], window: [2, 2], stride: [3, 3], padding: [0, 0] },
];

impl Case {
    fn y(&self) -> [usize; 4] {
        let along =
            |at: usize| (self.x[at + 2] + 2 * self.padding[at] - self.window[at]) / self.stride[at] + 1;
        [self.x[0], self.x[1], along(0), along(1)]
    }

    /// Pixels of a window, in their order.
    fn pixels(&self, row: usize, column: usize) -> Vec<[usize; 2]> {
        let along = |at: usize, position: usize| -> Vec<usize> {
            let first = (position * self.stride[at]) as i64 - self.padding[at] as i64;
            let pixels = first..first + self.window[at] as i64;
            pixels
                .filter(|pixel| (0..self.x[at + 2] as i64).contains(pixel))
                .map(|pixel| pixel as usize)
                .collect()
        };
        let columns = along(1, column);
        along(0, row).into_iter().flat_map(|row| columns.iter().map(move |column| [row, *column])).collect()
    }
}

fn place([_, channels, rows, columns]: [usize; 4], [n, c, h, w]: [usize; 4], channels_last: bool) -> usize {
    match channels_last {
        true => ((n * rows + h) * columns + w) * channels + c,
        false => ((n * channels + c) * rows + h) * columns + w,
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Max,
    AveragePixels,
    AverageAll,
}

/// Results and the gradient of the images, each with the sum of absolute values.
#[allow(clippy::type_complexity, reason = "two lists of a number and its magnitude")]
fn exact(case: &Case, kind: Kind, last: bool, x: &[f64], dy: &[f64]) -> (Vec<(f64, f64)>, Vec<(f64, f64)>) {
    let [images, channels, rows, columns] = case.y();
    let (mut y, mut dx) = (vec![(0.0, 0.0); dy.len()], vec![(0.0, 0.0); x.len()]);
    for at in 0..images * channels * rows * columns {
        let (rest, column) = (at / columns, at % columns);
        let (rest, row) = (rest / rows, rest % rows);
        let (n, c) = (rest / channels, rest % channels);
        let to = place(case.y(), [n, c, row, column], last);
        let pixels: Vec<usize> =
            case.pixels(row, column).iter().map(|[h, w]| place(case.x, [n, c, *h, *w], last)).collect();
        let divisor = match kind {
            Kind::AverageAll => (case.window[0] * case.window[1]) as f64,
            _ => pixels.len() as f64,
        };
        if kind == Kind::Max {
            let best =
                pixels.iter().copied().reduce(|best, at| if x[at] > x[best] { at } else { best }).unwrap();
            y[to] = (x[best], 0.0);
            dx[best] = (dx[best].0 + dy[to], dx[best].1 + dy[to].abs());
            continue;
        }
        for at in pixels {
            y[to] = (y[to].0 + x[at] / divisor, y[to].1 + x[at].abs() / divisor);
            dx[at] = (dx[at].0 + dy[to] / divisor, dx[at].1 + dy[to].abs() / divisor);
        }
    }
    (y, dx)
}

fn compare<T: TestNumber + NetworkElement>(
    gpu: &DeviceRuntime,
    case: &Case,
    kind: Kind,
    channels_last: bool,
) {
    let dnn = Dnn::new(gpu);
    let (x_len, y_len) = (case.x.iter().product(), case.y().iter().product());
    let (x, dy) = (made_up::<T>(60, x_len), made_up::<T>(61, y_len));
    let (images, gradient) = (gpu.upload(&x).unwrap(), gpu.upload(&dy).unwrap());
    let (result, back) = (gpu.allocate::<T>(y_len).unwrap(), gpu.allocate::<T>(x_len).unwrap());
    let tensor = |buffer, dimensions| {
        let tensor = Tensor::new(buffer, dimensions);
        if channels_last { tensor.channels_last() } else { tensor }
    };
    let x_tensor = tensor(&images, case.x);
    let (y_tensor, dy_tensor) = (tensor(&result, case.y()), tensor(&gradient, case.y()));
    let calls = match kind {
        Kind::Max => [
            dnn.max_pool(x_tensor, case.window, y_tensor),
            dnn.max_pool_backward(x_tensor, dy_tensor, case.window, &back),
        ],
        _ => [
            dnn.average_pool(x_tensor, case.window, y_tensor),
            dnn.average_pool_backward(dy_tensor, case.window, tensor(&back, case.x)),
        ],
    };
    let tolerances = calls.map(|call| {
        let call = call.stride(case.stride).padding(case.padding);
        let call = if kind == Kind::AverageAll { call.count_padding() } else { call };
        let tolerance = Tolerance::of(&call.operation().unwrap());
        call.submit().unwrap();
        tolerance
    });
    assert_eq!(tolerances[0].bound(1.0, 1.0) == 0.0, kind == Kind::Max, "the greatest is one of them");
    let numbers = |values: &[T]| values.iter().map(|value| value.number()).collect::<Vec<_>>();
    let (y, dx) = exact(case, kind, channels_last, &numbers(&x), &numbers(&dy));
    let what = format!("{} {kind:?} {case:?} last {channels_last}", T::TYPE);
    for ((name, found, exact), tolerance) in [("y", result, y), ("dx", back, dx)].into_iter().zip(tolerances)
    {
        for (at, (found, (exact, size))) in
            numbers(&found.download().unwrap()).into_iter().zip(exact).enumerate()
        {
            close(&format!("{what}: {name} at {at}"), &tolerance, found, exact, size);
        }
    }
}

#[test]
fn pools_and_their_gradients_are_those_of_windows() {
    everywhere_and_in_workers("pools_and_their_gradients_are_those_of_windows", |gpu| {
        for case in &CASES {
            for kind in [Kind::Max, Kind::AveragePixels, Kind::AverageAll] {
                for channels_last in [false, true] {
                    compare::<f32>(gpu, case, kind, channels_last);
                    compare::<f16>(gpu, case, kind, channels_last);
                    compare::<bf16>(gpu, case, kind, channels_last);
                }
            }
        }
    });
}

#[test]
fn a_nan_is_the_greatest_of_a_window_and_equal_numbers_are_taken_in_order() {
    everywhere("a_nan_is_the_greatest_of_a_window_and_equal_numbers_are_taken_in_order", |gpu| {
        let dnn = Dnn::new(gpu);
        let x = gpu.upload(&[1.0_f32, f32::NAN, 7.0, 7.0]).unwrap();
        let (y, dy) = (gpu.allocate::<f32>(2).unwrap(), gpu.upload(&[10.0_f32, 20.0]).unwrap());
        let dx = gpu.allocate::<f32>(4).unwrap();
        let (images, results) = (Tensor::new(&x, [1, 1, 1, 4]), Tensor::new(&y, [1, 1, 1, 2]));
        dnn.max_pool(images, [1, 2], results).submit().unwrap();
        let found = y.download().unwrap();
        assert!(found[0].is_nan() && found[1] == 7.0, "{found:?}");
        dnn.max_pool_backward(images, Tensor::new(&dy, [1, 1, 1, 2]), [1, 2], &dx).submit().unwrap();
        assert_eq!(dx.download().unwrap(), [0.0, 10.0, 20.0, 0.0]);
    });
}

#[test]
fn tensors_lie_at_the_start_of_longer_buffers() {
    everywhere("tensors_lie_at_the_start_of_longer_buffers", |gpu| {
        let dnn = Dnn::new(gpu);
        let (images, results) = (gpu.upload(&[3.0_f32; 20]).unwrap(), gpu.upload(&[7.0_f32; 6]).unwrap());
        let (x, y) = (Tensor::new(&images, [1, 1, 4, 4]), Tensor::new(&results, [1, 1, 2, 2]));
        dnn.max_pool(x, [2, 2], y).submit().unwrap();
        assert_eq!(results.download().unwrap(), [3.0, 3.0, 3.0, 3.0, 7.0, 7.0]);
        let gradient = gpu.upload(&[9.0_f32; 18]).unwrap();
        dnn.max_pool_backward(x, y, [2, 2], &gradient.view(..16).unwrap()).submit().unwrap();
        let found = gradient.download().unwrap();
        assert_eq!(found[..16].iter().sum::<f32>(), 12.0, "one of each window");
        assert_eq!(found[16..], [9.0; 2], "what lies behind the tensor stays");
        dnn.average_pool_backward(y, [2, 2], Tensor::new(&gradient, [1, 1, 4, 4])).submit().unwrap();
        let found = gradient.download().unwrap();
        assert_eq!((&found[..16], &found[16..]), (&[0.75; 16][..], &[9.0; 2][..]));
    });
}

#[test]
fn pools_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let refused = |result: Result<_, LibraryError>| match result {
        Err(error @ LibraryError::Argument { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let (images, results) = (gpu.zeros::<f32>(2 * 16).unwrap(), gpu.upload(&[7.0_f32; 8]).unwrap());
    let (x, y) = (Tensor::new(&images, [1, 2, 4, 4]), Tensor::new(&results, [1, 2, 2, 2]));
    let text = refused(dnn.max_pool(x, [2, 2], y.channels_last()).submit());
    assert!(text.contains("dnn.max_pool: `x` in the layout nchw and `y` in nhwc"), "{text}");
    let text = refused(dnn.max_pool(x, [2, 0], y).submit());
    assert!(text.contains("windows of [2, 0]"), "{text}");
    let text = refused(dnn.average_pool(x, [2, 2], y).padding([2, 0]).submit());
    assert!(text.contains("a padding of [2, 0] for windows of [2, 2]"), "{text}");
    let text = refused(dnn.max_pool(x, [2, 2], y).count_padding().submit());
    assert!(text.contains("leave `count_padding` out"), "{text}");
    let text = refused(dnn.average_pool(x, [5, 2], y).submit());
    assert!(text.contains("windows of [5, 2] in images of 1 x 2 x 4 x 4"), "{text}");
    let text = refused(dnn.average_pool(x, [2, 2], y).stride([1, 2]).submit());
    let fits = |text: &str, names: [&str; 2]| {
        let [image, result] = names;
        let wanted = format!(
            "`{result}` is 1 x 2 x 2 x 2 where `{image}` of 1 x 2 x 4 x 4 and windows of [2, 2] give 1 x 2 x 3 x 2"
        );
        assert!(text.contains(&wanted), "{text}");
    };
    fits(&text, ["x", "y"]);
    let text = refused(dnn.average_pool_backward(y, [2, 2], x).stride([1, 2]).submit());
    fits(&text, ["dx", "dy"]);
    let text = refused(dnn.max_pool_backward(x, y, [2, 2], &images).stride([1, 2]).submit());
    fits(&text, ["x", "dy"]);
    let text = refused(dnn.average_pool_backward(y.channels_last(), [2, 2], x).submit());
    assert!(text.contains("dnn.average_pool_backward: `dx` in the layout nchw and `dy` in nhwc"), "{text}");
    let large = Tensor::new(&images, [1 << 16, 1 << 16, 4, 4]);
    let text = refused(dnn.max_pool(large, [2, 2], Tensor::new(&results, [1 << 16, 1 << 16, 2, 2])).submit());
    assert!(text.contains("split the batch: use tensors below 2^31 elements"), "{text}");
    let large = Tensor::new(&images, [1, 1, 1 << 16, 1 << 16]);
    let text = refused(dnn.max_pool(large, [2, 2], Tensor::new(&results, [1, 1, 1 << 15, 1 << 15])).submit());
    assert!(text.contains("split the image, or its channels: use tensors below 2^31 elements"), "{text}");
    let text =
        refused(dnn.max_pool(x, [2, 2], Tensor::new(&images.view(..8).unwrap(), [1, 2, 2, 2])).submit());
    assert!(text.contains("`x` and `y` share memory"), "{text}");
    let text = refused(dnn.max_pool_backward(x, y, [2, 2], &results).submit());
    assert!(text.contains("dnn.max_pool_backward: `dx` has 8 elements and must have 32"), "{text}");
    assert_eq!(results.download().unwrap(), [7.0; 8], "nothing was changed");
}
