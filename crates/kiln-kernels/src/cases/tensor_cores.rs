//! Products of matrices and attention on the tensor cores.
//!
//! The order of additions inside one instruction differs between architectures, so the oracle is the exact value and the buffer says how close to it a result
//! must be. What one instruction adds is truncated to 24 bits: five instructions of a sum below 16 lose less than 5 * 2^-20. Attention rounds its weights to
//! halves, 2^-11 of each, and the values are at most 1.

use super::half::{BRAIN, Format, HALF, Toward};
use crate::argument::{CaseArgument, exact, value};
use crate::buffer::Compare;
use crate::case::{Case, CaseShape, case};
use crate::launch_arguments::CaseArguments;
use crate::seeded_inputs::Random;
use crate::source::{CaseSource, source};

const SOURCE: &CaseSource = source!("tensor_cores");

/// Rows and columns of a product: neither is a multiple of a tile.
const ROWS: usize = 80;
const COLUMNS: usize = 72;
/// Bytes of a row of the left matrix and of a column of the right one: two steps of 64 bytes and a half.
const ROW_BYTES: usize = 160;
const PRODUCT: CaseShape = CaseShape::cubic([2, 2, 1], [128, 1, 1]);
const CLOSE_SUM: Compare = Compare::Close { relative: 0.0, absolute: 5e-6 };

/// Halves in a row of attention.
const WIDTH: usize = 64;
const QUERIES: usize = 80;
const KEYS: usize = 72;
const ATTENTION: CaseShape = CaseShape::linear(2, 128);
const CLOSE_MEAN: Compare = Compare::Close { relative: 0.0, absolute: 6e-4 };
/// An eighth, the root of the width, times the logarithm of e to base 2.
const SCALE_LOG2: f32 = 0.180_336_88;

fn halves(r: &mut Random, count: usize, format: Format, limit: f64) -> Vec<u16> {
    r.list(count, |r| format.narrow(r.float(-limit, limit), Toward::Nearest))
}

fn wide(format: Format, list: &[u16]) -> Vec<f64> {
    list.iter().map(|bits| format.widen(*bits)).collect()
}

/// Rounded to 10 bits of fraction, halves away from zero, as `cvt.rna.tf32.f32` does.
fn tensor_float(x: f32) -> f64 {
    f64::from(f32::from_bits((x.to_bits() + 0x1000) & !0x1fff))
}

fn product_arguments(a: CaseArgument, b: CaseArgument, c: CaseArgument) -> Vec<CaseArgument> {
    vec![a, b, c, value(ROWS as u32), value(COLUMNS as u32), value(ROW_BYTES as u32)]
}

fn of_halves(r: &mut Random, format: Format) -> Vec<CaseArgument> {
    let mut matrix = |lines: usize| exact(halves(r, lines * ROW_BYTES / 2, format, 1.0));
    let (a, b) = (matrix(ROWS), matrix(COLUMNS));
    product_arguments(a, b, exact(vec![0f32; ROWS * COLUMNS]).judged(CLOSE_SUM))
}

/// The exact product of rows and columns that lie one behind the other.
fn product(a: &[f64], b: &[f64]) -> Vec<f32> {
    let length = a.len() / ROWS;
    let cell = |row: &[f64], column: &[f64]| row.iter().zip(column).map(|(x, y)| x * y).sum::<f64>() as f32;
    a.chunks(length).flat_map(|row| b.chunks(length).map(move |column| cell(row, column))).collect()
}

fn expect_product(arguments: &mut CaseArguments, format: Format) {
    let (a, b) = (wide(format, &arguments.u16s(0)), wide(format, &arguments.u16s(1)));
    arguments.set(2, product(&a, &b));
}

fn attention_arguments(r: &mut Random, queries: usize, is_causal: bool) -> Vec<CaseArgument> {
    let rows = [(queries, 2.0), (KEYS, 2.0), (KEYS, 1.0)];
    let mut list: Vec<CaseArgument> =
        rows.iter().map(|(rows, limit)| exact(halves(r, rows * WIDTH, HALF, *limit))).collect();
    list.push(exact(vec![0f32; queries * WIDTH]).judged(CLOSE_MEAN));
    list.extend([value(queries as u32), value(KEYS as u32), value(SCALE_LOG2), value(u32::from(is_causal))]);
    list
}

/// The mean of the values that a row sees, each weighted by the power of its score.
fn attention(q: &[f64], k: &[f64], v: &[f64], is_causal: bool) -> Vec<f32> {
    let row = |(at, query): (usize, &[f64])| {
        let seen = if is_causal { at + 1 } else { KEYS };
        let score = |key: &[f64]| -> f64 { query.iter().zip(key).map(|(x, y)| x * y).sum() };
        let scores = k.chunks(WIDTH).take(seen).map(|key| score(key) / 8.0);
        let weights: Vec<f64> = scores.map(f64::exp).collect();
        let total: f64 = weights.iter().sum();
        let column = |column: usize| -> f64 {
            weights.iter().zip(v.chunks(WIDTH)).map(|(weight, value)| weight * value[column]).sum()
        };
        (0..WIDTH).map(|at| (column(at) / total) as f32).collect::<Vec<_>>()
    };
    q.chunks(WIDTH).enumerate().flat_map(row).collect()
}

fn expect_attention(arguments: &mut CaseArguments) {
    let [q, k, v] = [0, 1, 2].map(|at| wide(HALF, &arguments.u16s(at)));
    let is_causal = arguments.integer(7) != 0;
    arguments.set(3, attention(&q, &k, &v, is_causal));
}

pub(super) const CASES: &[Case] = &[
    case!(SOURCE, "product_f16", PRODUCT, |r| of_halves(r, HALF), |a| expect_product(a, HALF)),
    case!(SOURCE, "product_bf16", PRODUCT, |r| of_halves(r, BRAIN), |a| expect_product(a, BRAIN)),
    case!(
        SOURCE,
        "product_tf32",
        PRODUCT,
        |r| {
            let mut matrix = |lines: usize| exact(r.f32s(lines * ROW_BYTES / 4, -1.0, 1.0));
            let (a, b) = (matrix(ROWS), matrix(COLUMNS));
            product_arguments(a, b, exact(vec![0f32; ROWS * COLUMNS]).judged(CLOSE_SUM))
        },
        |a| {
            let [x, y] = [0, 1].map(|at| a.f32s(at).into_iter().map(tensor_float).collect::<Vec<_>>());
            a.set(2, product(&x, &y));
        }
    ),
    case!(
        SOURCE,
        "product_s8",
        PRODUCT,
        |r| {
            let mut matrix = |lines: usize| exact(r.list(lines * ROW_BYTES, |r| r.next() as i8));
            let (a, b) = (matrix(ROWS), matrix(COLUMNS));
            product_arguments(a, b, exact(vec![0i32; ROWS * COLUMNS]))
        },
        |a| {
            let (x, y) = (a.i8s(0), a.i8s(1));
            let cell = |row: &[i8], column: &[i8]| -> i32 {
                row.iter().zip(column).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
            };
            let rows = x.chunks(ROW_BYTES);
            let cells = rows.flat_map(|row| y.chunks(ROW_BYTES).map(move |column| cell(row, column)));
            a.set(2, cells.collect::<Vec<i32>>());
        }
    ),
    case!(SOURCE, "attention", ATTENTION, |r| attention_arguments(r, QUERIES, false), expect_attention),
    case!(
        SOURCE,
        "attention_causal",
        "attention",
        ATTENTION,
        |r| attention_arguments(r, KEYS, true),
        expect_attention
    ),
];
