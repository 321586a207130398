//! The products of warpgroups that are tried.

use kiln_kernels::{MatrixSpread, Random};

use super::element::bits;
use super::trial::{Oracle, Trial};
use super::warpgroup::{Product, THREADS};
use super::warpgroup_judge::ProductJudge;

const PLAIN: Product = Product {
    a: "f16",
    b: "f16",
    sum: "f32",
    columns: 8,
    swizzle: 0,
    a_in_registers: false,
    transposed: [false; 2],
    scales: [1; 2],
    adds: true,
    satfinite: false,
    inside: 0,
    shift: 0,
    based: false,
    repeats: 1,
};

const TYPES: [[&str; 3]; 17] = [
    ["f16", "f16", "f32"],
    ["f16", "f16", "f16"],
    ["bf16", "bf16", "f32"],
    ["tf32", "tf32", "f32"],
    ["e4m3", "e4m3", "f32"],
    ["e4m3", "e5m2", "f32"],
    ["e5m2", "e4m3", "f32"],
    ["e5m2", "e5m2", "f32"],
    ["e4m3", "e4m3", "f16"],
    ["e4m3", "e5m2", "f16"],
    ["e5m2", "e4m3", "f16"],
    ["e5m2", "e5m2", "f16"],
    ["s8", "s8", "s32"],
    ["s8", "u8", "s32"],
    ["u8", "s8", "s32"],
    ["u8", "u8", "s32"],
    ["b1", "b1", "s32"],
];
const SWIZZLES: [usize; 4] = [0, 32, 64, 128];
const WIDTHS: [usize; 5] = [8, 16, 64, 128, 256];
const SIGNS: [[i32; 2]; 4] = [[1, 1], [-1, 1], [1, -1], [-1, -1]];

fn is_float(product: &Product) -> bool {
    product.sum != "s32"
}

/// Every type in every width, A in registers and in shared memory; layouts and signs in turns.
pub(crate) fn widths() -> Vec<Trial> {
    let mut products = Vec::new();
    for [a, b, sum] in TYPES {
        for (at, columns) in WIDTHS.into_iter().enumerate() {
            for a_in_registers in [false, true] {
                let turn = products.len() + at;
                let mut product = Product { a, b, sum, columns, a_in_registers, ..PLAIN };
                product.swizzle = SWIZZLES[turn % 4];
                product.adds = turn % 5 != 4;
                if bits(a) == 16 {
                    product.transposed = [!a_in_registers && turn / 2 % 2 == 1, turn % 3 == 1];
                }
                if is_float(&product) {
                    product.scales = SIGNS[turn % 7 % 4];
                }
                products.push(product);
            }
        }
    }
    trials(products)
}

/// Every layout of every type.
pub(crate) fn layouts() -> Vec<Trial> {
    let mut products = Vec::new();
    for (at, [a, b, sum]) in TYPES.into_iter().enumerate() {
        for swizzle in SWIZZLES {
            let plain = Product { a, b, sum, swizzle, columns: 32, ..PLAIN };
            if bits(a) != 16 {
                products.push(Product { a_in_registers: at % 2 == 0, ..plain });
                continue;
            }
            for transposed in [[false, false], [false, true], [true, false], [true, true]] {
                products.push(Product { transposed, columns: [80, 72][at % 2], ..plain });
            }
            for transposed in [[false, false], [false, true]] {
                products.push(Product { transposed, a_in_registers: true, ..plain });
            }
        }
        for (swizzle, inside) in [(64, 32), (128, 32), (128, 64), (128, 96)] {
            products.push(Product { a, b, sum, swizzle, inside, columns: 16, ..PLAIN });
        }
    }
    for (at, [a, b, sum]) in TYPES.into_iter().enumerate() {
        for (swizzle, shift) in [(32, 1), (64, 3), (128, 1), (128, 6)] {
            let plain = Product { a, b, sum, swizzle, shift, columns: 16, ..PLAIN };
            products.push(Product { based: at % 2 == 0, ..plain });
            if bits(a) == 16 {
                products.push(Product { based: at % 2 == 1, transposed: [true, true], ..plain });
                products.push(Product { based: at % 2 == 1, ..plain });
            }
        }
    }
    trials(products)
}

/// Signs, limits, and D that is not added.
pub(crate) fn signs() -> Vec<Trial> {
    let mut products = Vec::new();
    for (at, [a, b, sum]) in TYPES.into_iter().enumerate() {
        let plain = Product { a, b, sum, swizzle: SWIZZLES[at % 4], ..PLAIN };
        for (at, adds) in [(0, true), (1, false)] {
            let a_in_registers = at == 0;
            if !is_float(&plain) {
                let satfinite = a != "b1";
                products.push(Product { adds, satfinite, a_in_registers, ..plain });
                continue;
            }
            products.extend(SIGNS.map(|scales| Product { scales, adds, ..plain }));
            products.push(Product { scales: [-1, 1], adds, a_in_registers: true, ..plain });
        }
    }
    for (at, [a, b, sum]) in TYPES.into_iter().enumerate() {
        let plain = Product { a, b, sum, swizzle: SWIZZLES[at % 4], ..PLAIN };
        products.push(Product { repeats: 3, ..plain });
        products.push(Product { repeats: 2, a_in_registers: true, columns: 24, ..plain });
    }
    trials(products)
}

fn trials(products: Vec<Product>) -> Vec<Trial> {
    products.into_iter().enumerate().map(|(at, product)| trial(product, at)).collect()
}

/// A block for each of some kinds of operands, fewer of them where blocks are large.
fn trial(product: Product, turn: usize) -> Trial {
    let random = &mut Random::new(turn as u64 + 1000);
    let kinds = match product.columns {
        0..=32 => MatrixSpread::ALL.len(),
        33..=80 => 3,
        81..=128 => 2,
        _ => 1,
    };
    let spread = |at: usize| MatrixSpread::ALL[(at + turn * kinds) % MatrixSpread::ALL.len()];
    let blocks: Vec<_> = (0..kinds).map(|at| product.operands(spread(at), random)).collect();
    let input = blocks.iter().flat_map(|operands| product.input(operands, random)).collect();
    Trial {
        name: product.name(),
        text: product.text(),
        blocks: kinds as u32,
        threads: THREADS as u32,
        cluster: 1,
        tensor: None,
        input,
        output: vec![0; kinds * THREADS * product.results() * 4],
        unit: 4 / product.per_register(),
        oracle: Oracle::Judge(Box::new(ProductJudge { product, blocks })),
    }
}
