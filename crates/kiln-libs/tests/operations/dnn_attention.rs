//! Attention, against softmax and sums in `f64`.

use half::{bf16, f16};
use kiln::DeviceRuntime;
use kiln_libs::dnn::{AttentionTensor, Determinism, Dnn, NetworkElement};
use kiln_libs::{LibraryError, Tolerance};

use crate::numbers::{TestNumber, made_up};
use crate::rig::{everywhere, everywhere_and_in_workers};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Mask {
    None,
    TopLeft,
    BottomRight,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    batch: usize,
    heads: usize,
    key_heads: usize,
    queries: usize,
    keys: usize,
    head: usize,
    mask: Mask,
    positions_first: bool,
}

const SMALL: Case = Case {
    batch: 1,
    heads: 2,
    key_heads: 2,
    queries: 64,
    keys: 64,
    head: 64,
    mask: Mask::None,
    positions_first: false,
};

const CASES: &[Case] = &[
    SMALL,
    Case { mask: Mask::TopLeft, ..SMALL },
    Case { head: 128, positions_first: true, ..SMALL },
    Case { head: 128, mask: Mask::TopLeft, queries: 128, keys: 128, positions_first: true, ..SMALL },
    Case { batch: 2, queries: 37, keys: 85, ..SMALL },
    Case { batch: 2, queries: 70, keys: 70, mask: Mask::TopLeft, positions_first: true, ..SMALL },
    Case { heads: 4, key_heads: 2, mask: Mask::TopLeft, queries: 96, keys: 96, ..SMALL },
    Case { heads: 6, key_heads: 1, queries: 1, keys: 200, ..SMALL },
    Case { mask: Mask::BottomRight, ..SMALL },
    Case { mask: Mask::BottomRight, queries: 64, keys: 192, ..SMALL },
    Case { batch: 2, mask: Mask::BottomRight, queries: 37, keys: 85, positions_first: true, ..SMALL },
    Case { heads: 4, key_heads: 1, mask: Mask::BottomRight, queries: 3, keys: 130, head: 128, ..SMALL },
    Case { mask: Mask::BottomRight, queries: 1, keys: 100, ..SMALL },
];

/// The place of the first element of a head at a position.
fn place(case: &Case, heads: usize, positions: usize, [n, h, at]: [usize; 3]) -> usize {
    match case.positions_first {
        false => ((n * heads + h) * positions + at) * case.head,
        true => ((n * positions + at) * heads + h) * case.head,
    }
}

/// What a query gets, with the magnitude of each element.
fn attended(q: &[f64], keys: &[Vec<f64>], values: &[Vec<f64>], scale: f64) -> Vec<(f64, f64)> {
    let dot = |key: &Vec<f64>, size: bool| -> f64 {
        let products = q.iter().zip(key).map(|(q, k)| q * k);
        scale * if size { products.map(f64::abs).sum::<f64>() } else { products.sum::<f64>() }
    };
    let scores: Vec<f64> = keys.iter().map(|key| dot(key, false)).collect();
    let size = keys.iter().map(|key| dot(key, true)).fold(0.0, f64::max);
    let greatest = scores.iter().copied().fold(f64::MIN, f64::max);
    let weights: Vec<f64> = scores.iter().map(|score| (score - greatest).exp()).collect();
    let total: f64 = weights.iter().sum();
    let sum = |at: usize, number: fn(f64) -> f64| -> f64 {
        weights.iter().zip(values).map(|(weight, value)| weight / total * number(value[at])).sum()
    };
    (0..q.len()).map(|at| (sum(at, |value| value), (1.0 + size) * sum(at, f64::abs))).collect()
}

/// Runs one case, and returns what is wrong with it.
fn run<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime, case: &Case) -> Option<String> {
    let dnn = Dnn::new(gpu);
    let Case { batch, heads, key_heads, queries, keys, head, mask, .. } = *case;
    let numbers = |seed: u64, len: usize| -> Vec<T> {
        made_up::<T>(seed, len).into_iter().map(|value| T::from_number(value.number() / 2.0)).collect()
    };
    let q = numbers(40, batch * heads * queries * head);
    let [k, v] = [41, 42].map(|seed| numbers(seed, batch * key_heads * keys * head));
    let buffers = [&q, &k, &v].map(|values| gpu.upload(values).unwrap());
    let result = gpu.allocate::<T>(q.len()).unwrap();
    let tensor = |buffer, heads, positions| {
        let tensor = AttentionTensor::new(buffer, [batch, heads, positions, head]);
        if case.positions_first { tensor.positions_first() } else { tensor }
    };
    let call = || {
        let (k, v) = (tensor(&buffers[1], key_heads, keys), tensor(&buffers[2], key_heads, keys));
        let call = dnn.attention(tensor(&buffers[0], heads, queries), k, v, tensor(&result, heads, queries));
        let call = call.determinism(Determinism::RunToRun);
        match mask {
            Mask::None => call,
            Mask::TopLeft => call.causal(),
            Mask::BottomRight => call.causal_bottom_right(),
        }
    };
    let operation = call().operation().unwrap();
    let tolerance = Tolerance::of(&operation);
    if let Err(error) = call().submit() {
        return Some(error.to_string());
    }
    let found = result.download().unwrap();
    let row = |values: &[T], at: usize| {
        values[at..at + head].iter().map(|value| value.number()).collect::<Vec<_>>()
    };
    for (n, h) in (0..batch).flat_map(|n| (0..heads).map(move |h| (n, h))) {
        let shared = h / (heads / key_heads);
        let rows = |values: &[T]| -> Vec<Vec<f64>> {
            (0..keys).map(|at| row(values, place(case, key_heads, keys, [n, shared, at]))).collect()
        };
        let (key_rows, value_rows) = (rows(&k), rows(&v));
        for query in 0..queries {
            let seen = match mask {
                Mask::None => keys,
                Mask::TopLeft => keys.min(query + 1),
                Mask::BottomRight => keys - (queries - 1 - query),
            };
            let at = place(case, heads, queries, [n, h, query]);
            let scale = 1.0 / (head as f64).sqrt();
            let exact = attended(&row(&q, at), &key_rows[..seen], &value_rows[..seen], scale);
            for (element, (wanted, magnitude)) in exact.into_iter().enumerate() {
                let (found, bound) = (found[at + element].number(), tolerance.bound(magnitude, wanted));
                let is_close = (found - wanted).abs() <= bound;
                if !is_close {
                    let what = format!("sequence {n}, head {h}, query {query}, element {element}");
                    return Some(format!("{operation}: {what} is {found}, not {wanted} within {bound:e}"));
                }
            }
        }
    }
    None
}

fn compare<T: TestNumber + NetworkElement>(gpu: &DeviceRuntime, cases: &[Case]) {
    let wrong: Vec<String> = cases.iter().filter_map(|case| run::<T>(gpu, case)).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn attention_of_f16_is_a_weighted_sum_of_values() {
    everywhere("attention_of_f16_is_a_weighted_sum_of_values", |gpu| compare::<f16>(gpu, CASES));
}

#[test]
fn attention_of_bf16_is_a_weighted_sum_of_values() {
    everywhere("attention_of_bf16_is_a_weighted_sum_of_values", |gpu| compare::<bf16>(gpu, CASES));
}

#[test]
fn attention_runs_in_a_worker_and_in_a_graph() {
    everywhere_and_in_workers("attention_runs_in_a_worker_and_in_a_graph", |gpu| {
        compare::<f16>(gpu, &CASES[1..2]);
        let dnn = Dnn::new(gpu);
        let zeros = gpu.upload(&[f16::ZERO; 64 * 64]).unwrap();
        let values = gpu.upload(&[f16::ONE; 64 * 64]).unwrap();
        let result = gpu.upload(&[f16::ZERO; 64 * 64]).unwrap();
        let [q, v, o] = [&zeros, &values, &result].map(|buffer| AttentionTensor::new(buffer, [1, 1, 64, 64]));
        let mut graph = gpu.graph();
        dnn.attention(q, q, v, o).record(&mut graph).unwrap();
        let graph = graph.build().unwrap();
        graph.replay().unwrap();
        assert_eq!(result.download().unwrap(), [f16::ONE; 64 * 64]);
        values.upload(&[f16::from_f32(3.0); 64 * 64]).unwrap();
        graph.replay().unwrap();
        assert_eq!(result.download().unwrap(), [f16::from_f32(3.0); 64 * 64]);
    });
}

#[test]
fn attention_that_does_not_fit_is_refused() {
    let gpu = DeviceRuntime::simulated(1).unwrap();
    let dnn = Dnn::new(&gpu);
    let refused = |result: Result<_, LibraryError>| match result {
        Err(error @ LibraryError::Argument { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let [q, k, v, o] = [0; 4].map(|_: i32| gpu.upload(&[f16::ONE; 4 * 8 * 64]).unwrap());
    let of = |buffer, heads| AttentionTensor::new(buffer, [1, heads, 8, 64]);
    let text = refused(dnn.attention(of(&q, 4), of(&k, 4), of(&v, 4).positions_first(), of(&o, 4)).submit());
    assert!(text.contains("layouts heads_first, heads_first, positions_first, heads_first"), "{text}");
    let text = refused(dnn.attention(of(&q, 4), of(&k, 4), of(&v, 2), of(&o, 4)).submit());
    assert!(text.contains("1 x 4 x 8 x 64, 1 x 4 x 8 x 64, 1 x 2 x 8 x 64, 1 x 4 x 8 x 64"), "{text}");
    let text = refused(dnn.attention(of(&q, 4), of(&k, 3), of(&v, 3), of(&o, 4)).submit());
    assert!(text.contains("4 heads of queries for 3 heads of keys"), "{text}");
    let text = refused(dnn.attention(of(&q, 4), of(&k, 4), of(&v, 4), of(&q, 4)).submit());
    assert!(text.contains("`q` and `o` share memory"), "{text}");
    let text = refused(dnn.attention(of(&q, 4), of(&k, 4), of(&v, 4), of(&o, 4)).scale(f64::NAN).submit());
    assert!(text.contains("`scale` is NaN; use a finite number"), "{text}");
    let short = k.view(..64).unwrap();
    let text = refused(dnn.attention(of(&q, 4), of(&short, 4), of(&v, 4), of(&o, 4)).submit());
    assert!(text.contains("`k` has 128 bytes and must have 4096"), "{text}");
    let half = AttentionTensor::new(&k, [1, 4, 4, 64]);
    let text = refused(dnn.attention(of(&q, 4), half, half, of(&o, 4)).causal_bottom_right().submit());
    assert!(text.contains("8 queries at the end of 4 keys; use at most as many queries as keys"), "{text}");
    let single = gpu.upload(&[1.0_f32; 64]).unwrap();
    let single = AttentionTensor::new(&single, [1, 1, 1, 64]);
    let text = refused(dnn.attention(single, single, single, single).submit());
    assert!(
        text.contains("elements of f32; use f16 or bf16, or build it of blas.matmul and dnn.softmax"),
        "{text}"
    );
    assert_eq!(o.download().unwrap(), [f16::ONE; 4 * 8 * 64], "nothing was changed");
}
