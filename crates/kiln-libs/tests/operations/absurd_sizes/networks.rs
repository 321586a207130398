//! Sizes of the operations of neural networks.

use kiln::GpuRef;
use kiln_libs::dnn::{AttentionTensor, Tensor};

use super::{NONE, Row, SIZES, row};

fn tensor(buffer: &GpuRef<f32>, dimensions: [usize; 4]) -> Tensor<'_, f32> {
    Tensor::new(buffer, dimensions)
}

const ONE: [usize; 4] = [1; 4];

pub(super) fn convolution_rows() -> Vec<Row> {
    vec![
        row!("dnn.convolution", "batch", [0, 1], |it, s| {
            let of = |buffer| tensor(buffer, [s, 1, 1, 1]);
            it.dnn.convolution(of(&it.a), tensor(&it.one, ONE), of(&it.c))
        }),
        row!("dnn.convolution", "height", [1], |it, s| {
            let of = |buffer| tensor(buffer, [1, 1, s, 1]);
            it.dnn.convolution(of(&it.a), tensor(&it.one, ONE), of(&it.c))
        }),
        row!("dnn.convolution", "channels", [0, 1], |it, s| {
            let of = |buffer| tensor(buffer, [1, s, 1, 1]);
            it.dnn.convolution(of(&it.a), of(&it.b), tensor(&it.c, ONE))
        }),
        row!("dnn.convolution", "groups", [1], |it, s| {
            let one = |buffer| tensor(buffer, ONE);
            it.dnn.convolution(one(&it.a), one(&it.b), one(&it.c)).groups(s)
        }),
        row!("dnn.convolution", "padding", [0], |it, s| {
            let one = |buffer| tensor(buffer, ONE);
            it.dnn.convolution(one(&it.a), one(&it.b), one(&it.c)).padding([s, s])
        }),
        row!("dnn.convolution", "stride", SIZES[1..3], |it, s| {
            let one = |buffer| tensor(buffer, ONE);
            it.dnn.convolution(one(&it.a), one(&it.b), one(&it.c)).stride([s, s])
        }),
        row!("dnn.convolution", "dilation", SIZES[1..3], |it, s| {
            let one = |buffer| tensor(buffer, ONE);
            it.dnn.convolution(one(&it.a), one(&it.b), one(&it.c)).dilation([s, s])
        }),
        row!("dnn.convolution", "everything", [1], |it, s| {
            let of = |buffer| tensor(buffer, [s; 4]);
            let call = it.dnn.convolution(of(&it.a), of(&it.b), of(&it.c)).groups(s);
            call.dilation([s, s]).stride([s, s]).padding([0, 0])
        }),
        row!("dnn.convolution_backward_data", "batch", [0, 1], |it, s| {
            let of = |buffer| tensor(buffer, [s, 1, 1, 1]);
            it.dnn.convolution_backward_data(of(&it.a), tensor(&it.one, ONE), of(&it.c))
        }),
        row!("dnn.convolution_backward_filter", "batch", [0, 1], |it, s| {
            let of = |buffer| tensor(buffer, [s, 1, 1, 1]);
            it.dnn.convolution_backward_filter(of(&it.a), of(&it.c), tensor(&it.one, ONE))
        }),
    ]
}

pub(super) fn attention_rows() -> Vec<Row> {
    vec![
        row!("dnn.attention", "batch", [0, 1], |it, s| {
            let [q, k, v, o] = it.halves.each_ref().map(|half| AttentionTensor::new(half, [s, 1, 1, 64]));
            it.dnn.attention(q, k, v, o)
        }),
        row!("dnn.attention", "queries", [0, 1], |it, s| {
            let [q, o] = [&it.halves[0], &it.halves[3]].map(|half| AttentionTensor::new(half, [1, 1, s, 64]));
            let [k, v] = [&it.halves[1], &it.halves[2]].map(|half| AttentionTensor::new(half, [1, 1, 1, 64]));
            it.dnn.attention(q, k, v, o)
        }),
        row!("dnn.attention", "keys", [1], |it, s| {
            let [q, o] = [&it.halves[0], &it.halves[3]].map(|half| AttentionTensor::new(half, [1, 1, 1, 64]));
            let [k, v] = [&it.halves[1], &it.halves[2]].map(|half| AttentionTensor::new(half, [1, 1, s, 64]));
            it.dnn.attention(q, k, v, o)
        }),
        row!("dnn.attention", "head", NONE, |it, s| {
            let [q, k, v, o] = it.halves.each_ref().map(|half| AttentionTensor::new(half, [1, 1, 1, s]));
            it.dnn.attention(q, k, v, o)
        }),
    ]
}

pub(super) fn layer_rows() -> Vec<Row> {
    vec![
        row!("dnn.softmax", "columns", [1], |it, s| it.dnn.softmax(&it.x, s, &it.y)),
        row!("dnn.softmax_backward", "columns", [1], |it, s| it.dnn.softmax_backward(&it.x, &it.y, s, &it.z)),
        row!("dnn.layer_norm", "columns", [1], |it, s| it.dnn.layer_norm(&it.x, s, &it.y)),
        row!("dnn.rms_norm", "columns", [1], |it, s| it.dnn.rms_norm(&it.x, s, &it.y)),
        row!("dnn.cross_entropy", "classes", NONE, |it, s| {
            it.dnn.cross_entropy(&it.a, s, &it.labels, &it.y)
        }),
        row!("dnn.cross_entropy_backward", "classes", NONE, |it, s| {
            it.dnn.cross_entropy_backward(&it.a, s, &it.labels, &it.y, &it.b)
        }),
        row!("dnn.embedding", "columns", [1], |it, s| it.dnn.embedding(&it.a, s, &it.labels, &it.y)),
        row!("dnn.embedding_backward", "columns", [1], |it, s| {
            it.dnn.embedding_backward(&it.labels, s, &it.y, &it.a)
        }),
    ]
}

pub(super) fn pool_rows() -> Vec<Row> {
    vec![
        row!("dnn.max_pool", "images", [0, 1], |it, s| {
            let of = |buffer| tensor(buffer, [s, 1, 1, 1]);
            it.dnn.max_pool(of(&it.x), [1, 1], of(&it.y))
        }),
        row!("dnn.max_pool", "window", [1], |it, s| {
            it.dnn.max_pool(tensor(&it.x, ONE), [s, s], tensor(&it.y, ONE))
        }),
        row!("dnn.max_pool", "stride", SIZES[1..3], |it, s| {
            it.dnn.max_pool(tensor(&it.x, ONE), [1, 1], tensor(&it.y, ONE)).stride([s, s])
        }),
        row!("dnn.average_pool", "padding", [0], |it, s| {
            it.dnn.average_pool(tensor(&it.x, ONE), [1, 1], tensor(&it.y, ONE)).padding([s, s])
        }),
        row!("dnn.average_pool", "everything", [1], |it, s| {
            let of = |buffer| tensor(buffer, [s; 4]);
            it.dnn.average_pool(of(&it.x), [s, s], of(&it.y)).stride([s, s])
        }),
        row!("dnn.average_pool_backward", "window", [1], |it, s| {
            it.dnn.average_pool_backward(tensor(&it.x, ONE), [s, s], tensor(&it.y, ONE))
        }),
    ]
}
