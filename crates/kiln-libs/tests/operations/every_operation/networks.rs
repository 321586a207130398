//! Networks.

use half::f16;
use kiln::GpuRef;
use kiln_libs::Tolerance;
use kiln_libs::dnn::{AttentionTensor, Dnn, Tensor};

use super::{A, Row, down, out, up};

/// Kernels of kiln say by themselves how far they may be off.
macro_rules! kernel {
    ($call:expr, $result:expr, $wanted:expr) => {{
        let call = $call;
        let bound = Tolerance::of(&call.operation().unwrap()).bound(10.0, 10.0);
        drop(call.submit().unwrap());
        (down(&$result), Vec::from($wanted), bound)
    }};
}

fn image(buffer: &GpuRef<f32>, size: usize) -> Tensor<'_, f32> {
    Tensor::new(buffer, [1, 1, size, size])
}

pub(super) fn networks() -> Vec<Row> {
    [convolutions(), norms(), pools()].into_iter().flatten().collect()
}

fn convolutions() -> Vec<Row> {
    vec![
        Row {
            call: "dnn.convolution",
            run: |gpu| {
                let (x, w, y, dnn) =
                    (up(gpu, &A), up(gpu, &[1.0, 10.0, 100.0, 1000.0]), out(gpu, 1), Dnn::new(gpu));
                drop(dnn.convolution(image(&x, 2), image(&w, 2), image(&y, 1)).submit().unwrap());
                (down(&y), vec![4321.0], 0.01)
            },
        },
        Row {
            call: "dnn.convolution_backward_data",
            run: |gpu| {
                let (dy, w, dx, dnn) = (up(gpu, &[2.0_f32]), up(gpu, &A), out(gpu, 4), Dnn::new(gpu));
                drop(
                    dnn.convolution_backward_data(image(&dy, 1), image(&w, 2), image(&dx, 2))
                        .submit()
                        .unwrap(),
                );
                (down(&dx), vec![2.0, 4.0, 6.0, 8.0], 1e-5)
            },
        },
        Row {
            call: "dnn.convolution_backward_filter",
            run: |gpu| {
                let (x, dy, dw, dnn) = (up(gpu, &A), up(gpu, &[3.0_f32]), out(gpu, 4), Dnn::new(gpu));
                drop(
                    dnn.convolution_backward_filter(image(&x, 2), image(&dy, 1), image(&dw, 2))
                        .submit()
                        .unwrap(),
                );
                (down(&dw), vec![3.0, 6.0, 9.0, 12.0], 1e-5)
            },
        },
        Row {
            call: "dnn.attention",
            run: |gpu| {
                // Equal scores: the mean of the values.
                let (zeros, o) = (up(gpu, &[f16::ZERO; 128]), up(gpu, &[f16::ZERO; 64]));
                let v: Vec<f16> = (0..128).map(|at| f16::from_f32(if at < 64 { 1.0 } else { 3.0 })).collect();
                let (v, q) = (up(gpu, &v), up(gpu, &[f16::ONE; 64]));
                let keys = |buffer| AttentionTensor::new(buffer, [1, 1, 2, 64]);
                let query = |buffer| AttentionTensor::new(buffer, [1, 1, 1, 64]);
                drop(Dnn::new(gpu).attention(query(&q), keys(&zeros), keys(&v), query(&o)).submit().unwrap());
                let found = o.download().unwrap().into_iter().map(f64::from).collect();
                (found, vec![2.0; 64], 0.01)
            },
        },
        Row {
            call: "dnn.softmax",
            run: |gpu| {
                let (x, y, dnn) = (up(gpu, &[5.0_f32, 5.0]), out(gpu, 2), Dnn::new(gpu));
                kernel!(dnn.softmax(&x, 2, &y), y, [0.5, 0.5])
            },
        },
    ]
}

fn norms() -> Vec<Row> {
    vec![
        Row {
            call: "dnn.softmax_backward",
            run: |gpu| {
                let (y, dy, dx) = (up(gpu, &[0.5_f32, 0.5]), up(gpu, &[1.0_f32, 3.0]), out(gpu, 2));
                let dnn = Dnn::new(gpu);
                kernel!(dnn.softmax_backward(&y, &dy, 2, &dx), dx, [-0.5, 0.5])
            },
        },
        Row {
            call: "dnn.layer_norm",
            run: |gpu| {
                let (x, y, dnn) = (up(gpu, &[1.0_f32, 3.0]), out(gpu, 2), Dnn::new(gpu));
                kernel!(dnn.layer_norm(&x, 2, &y), y, [-1.0, 1.0])
            },
        },
        Row {
            call: "dnn.rms_norm",
            run: |gpu| {
                let (x, y, dnn) = (up(gpu, &[1.0_f32, 7.0]), out(gpu, 2), Dnn::new(gpu));
                kernel!(dnn.rms_norm(&x, 2, &y), y, [0.2, 1.4])
            },
        },
        Row {
            call: "dnn.layer_norm_backward",
            run: |gpu| {
                // Of two columns the normal numbers are signs, whatever x is: the gradient is zero.
                let (x, dy, dx) = (up(gpu, &[1.0_f32, 3.0]), up(gpu, &[5.0_f32, 9.0]), out(gpu, 2));
                let (means, scales, dnn) = (up(gpu, &[2.0_f32]), up(gpu, &[1.0_f32]), Dnn::new(gpu));
                kernel!(dnn.layer_norm_backward(&x, &dy, (&means, &scales), 2, &dx), dx, [0.0, 0.0])
            },
        },
        Row {
            call: "dnn.rms_norm_backward",
            run: |gpu| {
                // Of one column the normal number is the sign of x: the gradient is zero.
                let (x, dy, dx) = (up(gpu, &[4.0_f32]), up(gpu, &[8.0_f32]), out(gpu, 1));
                let (scales, dnn) = (up(gpu, &[0.25_f32]), Dnn::new(gpu));
                kernel!(dnn.rms_norm_backward(&x, &dy, &scales, 1, &dx), dx, [0.0])
            },
        },
        Row {
            call: "dnn.max_pool",
            run: |gpu| {
                let (x, y, dnn) = (up(gpu, &A), out(gpu, 1), Dnn::new(gpu));
                kernel!(dnn.max_pool(image(&x, 2), [2, 2], image(&y, 1)), y, [4.0])
            },
        },
        Row {
            call: "dnn.average_pool",
            run: |gpu| {
                let (x, y, dnn) = (up(gpu, &A), out(gpu, 1), Dnn::new(gpu));
                kernel!(dnn.average_pool(image(&x, 2), [2, 2], image(&y, 1)), y, [2.5])
            },
        },
    ]
}

fn pools() -> Vec<Row> {
    vec![
        Row {
            call: "dnn.max_pool_backward",
            run: |gpu| {
                let (x, dy, dx, dnn) = (up(gpu, &A), up(gpu, &[7.0_f32]), out(gpu, 4), Dnn::new(gpu));
                kernel!(
                    dnn.max_pool_backward(image(&x, 2), image(&dy, 1), [2, 2], &dx),
                    dx,
                    [0.0, 0.0, 0.0, 7.0]
                )
            },
        },
        Row {
            call: "dnn.average_pool_backward",
            run: |gpu| {
                let (dy, dx, dnn) = (up(gpu, &[8.0_f32]), out(gpu, 4), Dnn::new(gpu));
                kernel!(dnn.average_pool_backward(image(&dy, 1), [2, 2], image(&dx, 2)), dx, [2.0; 4])
            },
        },
        Row {
            call: "dnn.cross_entropy",
            run: |gpu| {
                let (logits, labels, losses) = (up(gpu, &[1.0_f32; 4]), up(gpu, &[2_i32]), out(gpu, 1));
                let dnn = Dnn::new(gpu);
                kernel!(dnn.cross_entropy(&logits, 4, &labels, &losses), losses, [4.0_f64.ln()])
            },
        },
        Row {
            call: "dnn.cross_entropy_backward",
            run: |gpu| {
                let (logits, labels) = (up(gpu, &[1.0_f32; 4]), up(gpu, &[2_i32]));
                let (losses, gradients, dnn) = (up(gpu, &[1.0_f32]), out(gpu, 4), Dnn::new(gpu));
                let call = dnn.cross_entropy_backward(&logits, 4, &labels, &losses, &gradients);
                kernel!(call, gradients, [0.25, 0.25, -0.75, 0.25])
            },
        },
        Row {
            call: "dnn.embedding",
            run: |gpu| {
                let (table, indices, rows) = (up(gpu, &A), up(gpu, &[1_i32, 0]), out(gpu, 4));
                let dnn = Dnn::new(gpu);
                kernel!(dnn.embedding(&table, 2, &indices, &rows), rows, [3.0, 4.0, 1.0, 2.0])
            },
        },
        Row {
            call: "dnn.embedding_backward",
            run: |gpu| {
                let (indices, gradients, table) = (up(gpu, &[1_i32, 1]), up(gpu, &A), out(gpu, 4));
                let dnn = Dnn::new(gpu);
                kernel!(dnn.embedding_backward(&indices, 2, &gradients, &table), table, [0.0, 0.0, 4.0, 6.0])
            },
        },
    ]
}
