//! Functions and combinations of elements against the host's, and conversions against Rust's.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::Tolerance;
use kiln_libs::elementwise::{Combination, ElementFloat, ElementFunction, ElementNumber, Elementwise};

use crate::numbers::{TestNumber, close, made_up};
use crate::rig::everywhere_and_in_workers;

/// More than a block of threads.
const LEN: usize = 300;

/// The value of a function at `x` and its slope there, by definitions that share nothing with the kernels.
fn exact(function: ElementFunction, x: f64) -> (f64, f64) {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let gelu = |x: f64| {
        let tangent = (std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044_715 * x * x * x)).tanh();
        0.5 * x * (1.0 + tangent)
    };
    match function {
        ElementFunction::Negate => (-x, -1.0),
        ElementFunction::Absolute => (x.abs(), if x == 0.0 { 0.0 } else { x.signum() }),
        ElementFunction::Reciprocal => (x.recip(), -x.powi(-2)),
        ElementFunction::SquareRoot => (x.sqrt(), 0.5 / x.sqrt()),
        ElementFunction::ReciprocalSquareRoot => (x.powf(-0.5), -0.5 * x.powf(-1.5)),
        ElementFunction::Exponential => (x.exp(), x.exp()),
        ElementFunction::Logarithm => (x.ln(), x.recip()),
        ElementFunction::Sine => (x.sin(), x.cos()),
        ElementFunction::Cosine => (x.cos(), -x.sin()),
        ElementFunction::Tanh => (x.tanh(), x.cosh().powi(-2)),
        ElementFunction::Sigmoid => (sigmoid(x), sigmoid(x) * sigmoid(-x)),
        ElementFunction::Relu => (x.max(0.0), f64::from(u8::from(x > 0.0))),
        ElementFunction::Silu => (x * sigmoid(x), sigmoid(x) + x * sigmoid(x) * sigmoid(-x)),
        // Central differences, of which the error is far below that of any type but `f64`, and below 1e-9 there.
        ElementFunction::Gelu => (gelu(x), (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5),
        other => panic!("{other:?} has no oracle"),
    }
}

fn at_infinities<T: TestNumber + ElementFloat>(gpu: &DeviceRuntime) {
    let elements = Elementwise::new(gpu);
    let numbers = [f64::NEG_INFINITY, f64::INFINITY, f64::NAN].map(T::from_number);
    let x = gpu.upload(&numbers).unwrap();
    let ones = gpu.upload(&[1.0; 3].map(T::from_number)).unwrap();
    let (y, slopes) = (gpu.zeros::<T>(3).unwrap(), gpu.zeros::<T>(3).unwrap());
    for function in
        [ElementFunction::Silu, ElementFunction::Gelu, ElementFunction::Relu, ElementFunction::Sigmoid]
    {
        elements.apply(function, &x, &y).submit().unwrap();
        elements.apply_backward(function, &x, &ones, &slopes).submit().unwrap();
        let [found, found_slopes] = [&y, &slopes].map(|it| it.download().unwrap());
        let is_sigmoid = function == ElementFunction::Sigmoid;
        let (values, wanted_slopes) =
            if is_sigmoid { ([0.0, 1.0], [0.0, 0.0]) } else { ([0.0, f64::INFINITY], [0.0, 1.0]) };
        for (found, wanted) in [(found, values), (found_slopes, wanted_slopes)] {
            assert_eq!([found[0].number(), found[1].number()], wanted, "{function:?}");
            assert!(found[2].number().is_nan(), "{function:?} of NaN");
        }
    }
}

#[test]
fn activations_at_infinities_are_their_limits_and_nan_stays() {
    everywhere_and_in_workers("activations_at_infinities_are_their_limits_and_nan_stays", |gpu| {
        at_infinities::<f32>(gpu);
        at_infinities::<f64>(gpu);
        at_infinities::<f16>(gpu);
        at_infinities::<bf16>(gpu);
    });
}

/// Whether a function has a value at a number that is not negative only.
fn needs_positive(function: ElementFunction) -> bool {
    matches!(
        function,
        ElementFunction::Logarithm
            | ElementFunction::SquareRoot
            | ElementFunction::ReciprocalSquareRoot
            | ElementFunction::Reciprocal
    )
}

fn functions<T: TestNumber + ElementFloat>(gpu: &DeviceRuntime, gelu_slack: f64) {
    let elements = Elementwise::new(gpu);
    for function in ElementFunction::ALL.iter().copied() {
        let numbers = made_up::<T>(1, LEN).into_iter().map(|x| match needs_positive(function) {
            true => T::from_number(x.number().abs() + 0.25),
            false => T::from_number(4.0 * x.number()),
        });
        let numbers: Vec<T> = numbers.collect();
        let gradients = made_up::<T>(2, LEN);
        let (x, dy) = (gpu.upload(&numbers).unwrap(), gpu.upload(&gradients).unwrap());
        let (y, dx) = (gpu.allocate::<T>(LEN).unwrap(), gpu.allocate::<T>(LEN).unwrap());
        let (forward, backward) =
            (elements.apply(function, &x, &y), elements.apply_backward(function, &x, &dy, &dx));
        let bound = Tolerance::of(&forward.operation().unwrap());
        let slope_bound = Tolerance::of(&backward.operation().unwrap());
        forward.submit().unwrap();
        backward.submit().unwrap();
        let (values, slopes) = (y.download().unwrap(), dx.download().unwrap());
        // In place, the same bits.
        elements.apply_backward(function, &x, &dy, &dy).submit().unwrap();
        elements.apply(function, &x, &x).submit().unwrap();
        let bits = |values: &[T]| bytemuck_bytes(values);
        assert_eq!(bits(&x.download().unwrap()), bits(&values), "{function:?} in place");
        assert_eq!(bits(&dy.download().unwrap()), bits(&slopes), "gradient of {function:?} in place");
        for (at, x) in numbers.iter().map(|x| x.number()).enumerate() {
            let ((value, slope), dy) = (exact(function, x), gradients[at].number());
            let what = format!("{function:?} of {x}");
            close(&what, &bound, values[at].number(), value, x.abs() + value.abs());
            let slack = if function == ElementFunction::Gelu { gelu_slack } else { 1.0 };
            let magnitude = dy.abs() * (1.0 + x.abs()) * (1.0 + slope.abs()) * slack;
            close(&format!("slope of {what}"), &slope_bound, slopes[at].number(), dy * slope, magnitude);
        }
    }
}

fn bytemuck_bytes<T: ElementNumber>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

#[test]
fn functions_and_their_slopes_are_within_their_tolerance() {
    everywhere_and_in_workers("functions_and_their_slopes_are_within_their_tolerance", |gpu| {
        functions::<f32>(gpu, 1.0);
        // The slope of GELU is found by differences, to nine digits.
        functions::<f64>(gpu, 1e6);
        functions::<f16>(gpu, 1.0);
        functions::<bf16>(gpu, 1.0);
    });
}

#[test]
fn functions_at_their_limits() {
    everywhere_and_in_workers("functions_at_their_limits", |gpu| {
        let elements = Elementwise::new(gpu);
        let (infinity, nan) = (f32::INFINITY, f32::NAN);
        let x = gpu.upload(&[-infinity, infinity, nan, 0.0, -0.0]).unwrap();
        let (y, ones) = (gpu.allocate::<f32>(5).unwrap(), gpu.upload(&[1.0_f32; 5]).unwrap());
        let check = |what: &str, wanted: [f32; 4]| {
            let found = y.download().unwrap();
            assert!(found[2].is_nan(), "{what} of NaN is {}", found[2]);
            let rest = [found[0], found[1], found[3], found[4]];
            let same = rest.iter().zip(&wanted).all(|(a, b)| a == b || a.is_nan() && b.is_nan());
            assert!(same, "{what}: {rest:?} and not {wanted:?}");
        };
        for (function, wanted) in [
            (ElementFunction::Relu, [0.0, infinity, 0.0, 0.0]),
            (ElementFunction::Gelu, [0.0, infinity, 0.0, 0.0]),
            (ElementFunction::Silu, [0.0, infinity, 0.0, 0.0]),
            (ElementFunction::Sigmoid, [0.0, 1.0, 0.5, 0.5]),
            (ElementFunction::Tanh, [-1.0, 1.0, 0.0, 0.0]),
            (ElementFunction::Exponential, [0.0, infinity, 1.0, 1.0]),
            (ElementFunction::Logarithm, [nan, infinity, -infinity, -infinity]),
            (ElementFunction::SquareRoot, [nan, infinity, 0.0, 0.0]),
            (ElementFunction::Absolute, [infinity, infinity, 0.0, 0.0]),
        ] {
            elements.apply(function, &x, &y).submit().unwrap();
            check(&format!("{function:?}"), wanted);
        }
        for (function, wanted) in [
            (ElementFunction::Relu, [0.0, 1.0, 0.0, 0.0]),
            (ElementFunction::Gelu, [0.0, 1.0, 0.5, 0.5]),
            (ElementFunction::Silu, [0.0, 1.0, 0.5, 0.5]),
            (ElementFunction::Sigmoid, [0.0, 0.0, 0.25, 0.25]),
            (ElementFunction::Tanh, [0.0, 0.0, 1.0, 1.0]),
            (ElementFunction::Absolute, [-1.0, 1.0, 0.0, 0.0]),
        ] {
            elements.apply_backward(function, &x, &ones, &y).submit().unwrap();
            check(&format!("the slope of {function:?}"), wanted);
        }
    });
}

fn combined(combination: Combination, a: f64, b: f64) -> f64 {
    match combination {
        Combination::Add => a + b,
        Combination::Subtract => a - b,
        Combination::Multiply => a * b,
        Combination::Divide => a / b,
        Combination::Minimum => a.min(b),
        Combination::Maximum => a.max(b),
        other => panic!("{other:?} has no oracle"),
    }
}

fn combinations<T: TestNumber + ElementFloat>(gpu: &DeviceRuntime) {
    let elements = Elementwise::new(gpu);
    let (first, second) = (made_up::<T>(3, LEN), made_up::<T>(4, LEN));
    let second: Vec<T> = second.iter().map(|b| T::from_number(b.number() + 3.0)).collect();
    for combination in Combination::ALL.iter().copied() {
        let (a, b) = (gpu.upload(&first).unwrap(), gpu.upload(&second).unwrap());
        let c = gpu.allocate::<T>(LEN).unwrap();
        let call = elements.combine(combination, &a, &b, &c);
        let bound = Tolerance::of(&call.operation().unwrap());
        call.submit().unwrap();
        let found = c.download().unwrap();
        elements.combine(combination, &a, &b, &a).submit().unwrap();
        assert_eq!(bytemuck_bytes(&a.download().unwrap()), bytemuck_bytes(&found), "{combination:?} into a");
        a.upload(&first).unwrap();
        elements.combine(combination, &a, &b, &b).submit().unwrap();
        assert_eq!(bytemuck_bytes(&b.download().unwrap()), bytemuck_bytes(&found), "{combination:?} into b");
        for at in 0..LEN {
            let (a, b) = (first[at].number(), second[at].number());
            let magnitude = combined(combination, a.abs(), b.abs()).abs() + a.abs() + b.abs();
            close(
                &format!("{combination:?} {a} {b}"),
                &bound,
                found[at].number(),
                combined(combination, a, b),
                magnitude,
            );
        }
        // Both inputs and the result in one.
        elements.combine(combination, &a, &a, &a).submit().unwrap();
        let same = a.download().unwrap();
        let a = first[0].number();
        close("itself", &bound, same[0].number(), combined(combination, a, a), 2.0 * a.abs() + 1.0);
    }
}

#[test]
fn combinations_of_floats_in_and_out_of_place() {
    everywhere_and_in_workers("combinations_of_floats_in_and_out_of_place", |gpu| {
        combinations::<f32>(gpu);
        combinations::<f64>(gpu);
        combinations::<f16>(gpu);
        combinations::<bf16>(gpu);
    });
}

#[test]
fn combinations_of_integers_wrap_and_divide_by_zero() {
    everywhere_and_in_workers("combinations_of_integers_wrap_and_divide_by_zero", |gpu| {
        let elements = Elementwise::new(gpu);
        let (first, second) = ([i32::MAX, i32::MIN, 7, -7, 5], [1, -1, 2, 2, 0]);
        let (a, b) = (gpu.upload(&first).unwrap(), gpu.upload(&second).unwrap());
        let c = gpu.allocate::<i32>(5).unwrap();
        let check = |combination, oracle: fn(i32, i32) -> i32| {
            elements.combine(combination, &a, &b, &c).submit().unwrap();
            let wanted: Vec<i32> = first.iter().zip(&second).map(|(a, b)| oracle(*a, *b)).collect();
            assert_eq!(c.download().unwrap(), wanted, "{combination:?}");
        };
        check(Combination::Add, i32::wrapping_add);
        check(Combination::Subtract, i32::wrapping_sub);
        check(Combination::Multiply, i32::wrapping_mul);
        check(Combination::Divide, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) });
        check(Combination::Minimum, i32::min);
        check(Combination::Maximum, i32::max);
        let bytes = gpu.upload(&[200_u8, 255, 0]).unwrap();
        elements.combine(Combination::Add, &bytes, &bytes, &bytes).submit().unwrap();
        assert_eq!(bytes.download().unwrap(), [144, 254, 0]);
    });
}

#[test]
fn multiples_with_a_shift() {
    everywhere_and_in_workers("multiples_with_a_shift", |gpu| {
        let elements = Elementwise::new(gpu);
        let x = gpu.upload(&[1.0_f64, -2.0, 0.1]).unwrap();
        elements.affine(3.0, &x, 0.5, &x).submit().unwrap();
        assert_eq!(x.download().unwrap(), [3.5, -5.5, 3.0 * 0.1 + 0.5]);
        let half = gpu.upload(&[f16::from_f32(2.0), f16::from_f32(65504.0)]).unwrap();
        let y = gpu.allocate::<f16>(2).unwrap();
        // Computed in f32, where it does not overflow before the shift.
        elements.affine(2.0, &half, -65504.0, &y).submit().unwrap();
        assert_eq!(y.download().unwrap(), [f16::from_f32(-65500.0), f16::from_f32(65504.0)]);
    });
}

fn cast<A: ElementNumber, B: ElementNumber>(gpu: &DeviceRuntime, from: &[A], oracle: impl Fn(A) -> B) {
    let (x, y) = (gpu.upload(from).unwrap(), gpu.allocate::<B>(from.len()).unwrap());
    Elementwise::new(gpu).cast(&x, &y).submit().unwrap();
    let wanted: Vec<B> = from.iter().map(|x| oracle(*x)).collect();
    let names = (std::any::type_name::<A>(), std::any::type_name::<B>());
    assert_eq!(bytemuck_bytes(&y.download().unwrap()), bytemuck_bytes(&wanted), "{names:?}");
}

#[test]
fn conversions_are_those_of_rust() {
    everywhere_and_in_workers("conversions_are_those_of_rust", |gpu| {
        let doubles =
            [0.0, -0.0, 1.5, -1.5, 2.5, 1e10, -1e10, 1e300, -1e300, f64::INFINITY, 1e-320, 65519.0, 65520.0];
        cast(gpu, &doubles, |x| x as f32);
        cast(gpu, &doubles, |x| x as i32);
        cast(gpu, &doubles, |x| x as u8);
        cast(gpu, &doubles, |x| x as i64);
        cast(gpu, &doubles, f16::from_f64);
        cast(gpu, &doubles, |x| x);
        let singles = [0.1_f32, -3.9, 3.4e38, 1e-40, 255.5, 65505.0, -129.0];
        cast(gpu, &singles, f64::from);
        cast(gpu, &singles, bf16::from_f32);
        cast(gpu, &singles, f16::from_f32);
        cast(gpu, &singles, |x| x as i8);
        cast(gpu, &singles, |x| x as u64);
        cast(gpu, &[f32::NAN], |_| 0_i32);
        cast(gpu, &singles.map(f16::from_f32), f16::to_f32);
        cast(gpu, &singles.map(bf16::from_f32), |x| f16::from_f32(x.to_f32()));
        let integers = [0_i64, -1, 255, 256, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1];
        cast(gpu, &integers, |x| x as u8);
        cast(gpu, &integers, |x| x as i32);
        cast(gpu, &integers, |x| x as u64);
        cast(gpu, &integers, |x| x as f64);
        cast(gpu, &integers, |x| x as f32);
        cast(gpu, &[-1_i8, 127], i64::from);
        cast(gpu, &[255_u8, 0], u32::from);
    });
}

#[test]
fn recorded_elements_are_replayed() {
    everywhere_and_in_workers("recorded_elements_are_replayed", |gpu| {
        let elements = Elementwise::new(gpu);
        let (x, y) = (gpu.upload(&[1.0_f32, -2.0]).unwrap(), gpu.zeros::<f32>(2).unwrap());
        let whole = gpu.allocate::<i32>(2).unwrap();
        let mut graph = gpu.graph();
        elements.combine(Combination::Add, &x, &y, &y).record(&mut graph).unwrap();
        elements.cast(&y, &whole).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        drop(elements);
        for turn in 1..=3 {
            graph.replay().unwrap();
            assert_eq!(whole.download().unwrap(), [turn, -2 * turn]);
        }
    });
}

#[test]
fn elements_that_do_not_fit_are_refused() {
    everywhere_and_in_workers("elements_that_do_not_fit_are_refused", |gpu| {
        let elements = Elementwise::new(gpu);
        let (x, y) = (gpu.upload(&[5.0_f32; 8]).unwrap(), gpu.upload(&[6.0_f32; 7]).unwrap());
        let shifted = (x.view(..7).unwrap(), x.view(1..).unwrap());
        let refused = |text: String, wanted: &str| assert!(text.contains(wanted), "{text}");
        let error = |result: kiln_libs::Result<kiln::Ticket>| result.unwrap_err().to_string();
        refused(
            error(elements.apply(ElementFunction::Relu, &x, &y).submit()),
            "elementwise.apply: `y` has 7 elements and must have 8, as `x` has",
        );
        refused(
            error(elements.apply(ElementFunction::Relu, &shifted.0, &shifted.1).submit()),
            "share a part of their memory",
        );
        refused(
            error(elements.combine(Combination::Add, &y, &x, &y).submit()),
            "`b` has 8 elements and must have 7",
        );
        refused(
            error(elements.combine(Combination::Add, &shifted.0, &y, &shifted.1).submit()),
            "share a part",
        );
        refused(error(elements.affine(1.0, &x, 0.0, &y).submit()), "elementwise.affine");
        let words = x.cast::<u32>().unwrap();
        refused(error(elements.cast(&x, &words).submit()), "`x` and `y` share memory");
        refused(error(elements.cast(&y, &words).submit()), "`y` has 8 elements and must have 7, as `x` has");
        let other = DeviceRuntime::simulated(3).unwrap();
        let foreign = other.upload(&[1.0_f32; 8]).unwrap();
        assert!(elements.apply(ElementFunction::Relu, &foreign, &x).submit().is_err());
        assert_eq!(x.download().unwrap(), [5.0; 8]);
        let none = gpu.allocate::<f32>(0).unwrap();
        elements.apply(ElementFunction::Relu, &none, &none).submit().unwrap();
        elements.cast(&none, &gpu.allocate::<f16>(0).unwrap()).submit().unwrap();
    });
}
