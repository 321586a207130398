//! Operations of neural networks that do not fit: refused before anything is queued, or found on the simulated device.

use kiln::DeviceRuntime;
use kiln_libs::LibraryError;
use kiln_libs::dnn::{AttentionTensor, Dnn, Math, Tensor};

fn refused<T: std::fmt::Debug>(result: Result<T, LibraryError>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, LibraryError::Argument { .. }), "{error:?}");
    error.to_string()
}

#[test]
fn convolutions_that_do_not_fit_are_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let (image, filter) = (gpu.zeros::<f32>(2 * 4 * 36).unwrap(), gpu.zeros::<f32>(8 * 4 * 9).unwrap());
    let result = gpu.upload(&vec![5.0_f32; 2 * 8 * 16]).unwrap();
    let x = Tensor::new(&image, [2, 4, 6, 6]);
    let w = Tensor::new(&filter, [8, 4, 3, 3]);
    let y = Tensor::new(&result, [2, 8, 4, 4]);
    dnn.convolution(x, w, y).load().unwrap();
    let text = refused(dnn.convolution(x, w.channels_last(), y).submit());
    assert!(text.contains("tensors in the layouts nchw, nhwc and nchw; use one layout"), "{text}");
    let text = refused(dnn.convolution(x, w, y).groups(2).submit());
    assert!(text.contains("filters of 8 x 4 x 3 x 3 for images of 2 x 4 x 6 x 6 in 2 groups"), "{text}");
    let text = refused(dnn.convolution(x, w, y).padding([1, 1]).submit());
    assert!(
        text.contains(
            "`y` is 2 x 8 x 4 x 4 where `x` of 2 x 4 x 6 x 6 and `w` of 8 x 4 x 3 x 3 give 2 x 8 x 6 x 6"
        ),
        "{text}"
    );
    let text = refused(dnn.convolution(x, w, y).dilation([3, 1]).submit());
    assert!(text.contains("a filter of 3x3 with a dilation of 3x1 in an image of 6x6"), "{text}");
    let text = refused(dnn.convolution(x, w, y).stride([0, 1]).submit());
    assert!(text.contains("`stride` is 0x1; use 1 or more"), "{text}");
    let text = refused(dnn.convolution(x, w, y).padding([usize::MAX, 0]).submit());
    assert!(text.contains("use less padding"), "{text}");
    let text = refused(dnn.convolution(x, w, y).groups(0).submit());
    assert!(text.contains("`groups` is 0; use 1 or more"), "{text}");
    let text = refused(dnn.convolution(Tensor::new(&image, [0, 4, 6, 6]), w, y).submit());
    assert!(text.contains("`batch` is 0"), "{text}");
    let nothing = Tensor::new(&image, [0, 4, 6, 6]);
    let text = refused(dnn.convolution(nothing, w, Tensor::new(&result, [0, 8, 5, 4])).submit());
    assert!(text.contains("`w` of 8 x 4 x 3 x 3 give 1 x 8 x 4 x 4"), "{text}");
    let odd = Tensor::new(&filter, [3, 2, 3, 3]);
    let text = refused(dnn.convolution(x, odd, Tensor::new(&result, [2, 3, 4, 4])).groups(2).submit());
    assert!(text.contains("4 channels and 3 filters in 2 groups"), "{text}");
    let text = refused(dnn.convolution(x, w, y).math(Math::F16).submit());
    assert!(text.contains("math f16 for f32; use ieee, or tf32 for f32"), "{text}");
    let large = Tensor::new(&image, [1 << 20, 4, 32, 32]);
    let text = refused(dnn.convolution(large, w, Tensor::new(&result, [1 << 20, 8, 30, 30])).submit());
    assert!(text.contains("`x` has 4294967296 elements; split the batch"), "{text}");
    let many = Tensor::new(&image, [3, 4, 6, 6]);
    let text = refused(dnn.convolution(many, w, Tensor::new(&result, [3, 8, 4, 4])).submit());
    assert!(text.contains("`x` has 1152 bytes and must have 1728"), "{text}");
    let inside = image.view(..2 * 4 * 16).unwrap();
    let one = Tensor::new(&filter, [4, 4, 3, 3]);
    let text = refused(dnn.convolution(x, one, Tensor::new(&inside, [2, 4, 4, 4])).submit());
    assert!(text.contains("`x` and `y` share memory, and one is written"), "{text}");
    let view = result.view(1..).unwrap();
    let text = refused(dnn.convolution(x, one, Tensor::new(&view, [2, 4, 4, 4])).submit());
    assert!(text.contains("`y` does not begin at a multiple of 16 bytes"), "{text}");
    let text = refused(dnn.convolution_backward_data(y, w, x).padding([1, 0]).submit());
    let wanted = "dnn.convolution_backward_data: `dy` is 2 x 8 x 4 x 4 where `dx` of 2 x 4 x 6 x 6 and `w` of 8 x 4 x 3 x 3 give 2 x 8 x 6 x 4; give all three";
    assert!(text.starts_with(wanted), "{text}");
    let text = refused(dnn.convolution_backward_filter(x, y, w).padding([1, 0]).submit());
    let wanted = "dnn.convolution_backward_filter: `dy` is 2 x 8 x 4 x 4 where `x` of 2 x 4 x 6 x 6 and `dw` of 8 x 4 x 3 x 3 give 2 x 8 x 6 x 4; give all three";
    assert!(text.starts_with(wanted), "{text}");
    assert_eq!(result.download().unwrap(), vec![5.0; 2 * 8 * 16], "nothing was changed");
}

#[test]
fn strides_and_dilations_have_the_limit_of_paddings() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (dnn, buffer, result) = (Dnn::new(&gpu), gpu.zeros::<f32>(4).unwrap(), gpu.zeros::<f32>(1).unwrap());
    let call = |channels| {
        let (x, w) = (Tensor::new(&buffer, [1, channels, 1, 1]), Tensor::new(&buffer, [1, channels, 1, 1]));
        dnn.convolution(x, w, Tensor::new(&result, [1, 1, 1, 1]))
    };
    for channels in [0, 1] {
        for size in [1 << 31, 1 << 40, usize::MAX] {
            let text = refused(call(channels).stride([size, 1]).submit());
            assert_eq!(text, format!("dnn.convolution: `stride` is {size}x1; use steps below 2^31"));
            let text = refused(call(channels).dilation([1, size]).submit());
            assert_eq!(text, format!("dnn.convolution: `dilation` is 1x{size}; use steps below 2^31"));
        }
        let most = (1 << 31) - 1;
        call(channels).stride([most, 1]).dilation([1, most]).operation().unwrap();
    }
}

#[test]
fn attention_without_keys_names_them() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let (dnn, halves) = (Dnn::new(&gpu), gpu.zeros::<half::f16>(64).unwrap());
    let result = gpu.zeros::<half::f16>(64).unwrap();
    let call = |queries, keys| {
        let (q, k) = (AttentionTensor::new(&halves, queries), AttentionTensor::new(&halves, keys));
        refused(dnn.attention(q, k, k, AttentionTensor::new(&result, queries)).submit())
    };
    for (queries, keys, shape) in [
        ([1, 1, 2, 8], [1, 1, 0, 8], "`k` is 1 x 1 x 0 x 8; give 1 key or more"),
        ([1, 1, 2, 8], [1, 0, 2, 8], "`k` is 1 x 0 x 2 x 8; give 1 key or more"),
        ([0, 1, 2, 8], [0, 1, 0, 8], "`k` is 0 x 1 x 0 x 8; give 1 key or more"),
        ([1, 1, 2, 0], [1, 1, 2, 0], "`q` is 1 x 1 x 2 x 0; give heads of 1 element or more"),
    ] {
        let text = call(queries, keys);
        assert!(text.starts_with(&format!("dnn.attention: {shape}")), "{text}");
    }
}

#[test]
fn only_pixels_that_a_filter_sees_must_be_written() {
    let convolution = |gpu: &DeviceRuntime, columns: usize| {
        let dnn = Dnn::new(gpu);
        let image = gpu.allocate::<f32>(4 * 5)?;
        for row in 0..4 {
            image.view(row * 5..row * 5 + columns)?.upload(&vec![1.0; columns])?;
        }
        let (filter, result) = (gpu.upload(&[1.0_f32; 4])?, gpu.allocate::<f32>(4)?);
        // Positions of 2 x 2 pixels two apart do not reach the last column.
        let x = Tensor::new(&image, [1, 1, 4, 5]);
        let call = dnn.convolution(x, Tensor::new(&filter, [1, 1, 2, 2]), Tensor::new(&result, [1, 1, 2, 2]));
        call.stride([2, 2]).submit().map(drop).map_err(kiln::Error::other)?;
        gpu.synchronize()
    };
    kiln::testing::check(0..1, |gpu| convolution(gpu, 4)).unwrap();
    let failure = kiln::testing::check(0..1, |gpu| convolution(gpu, 3)).unwrap_err().to_string();
    assert!(failure.contains("dnn.convolution") && failure.contains("never written"), "{failure}");
}
