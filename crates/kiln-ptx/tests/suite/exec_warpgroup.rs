//! `wgmma`: products of every type, layout and swizzle are those of the whole matrices.

use crate::warpgroup_kernel::{Product, bits};

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
};

const TYPES: [[&str; 3]; 14] = [
    ["f16", "f16", "f32"],
    ["f16", "f16", "f16"],
    ["bf16", "bf16", "f32"],
    ["tf32", "tf32", "f32"],
    ["e4m3", "e4m3", "f32"],
    ["e4m3", "e5m2", "f16"],
    ["e5m2", "e4m3", "f32"],
    ["e5m2", "e5m2", "f32"],
    ["e5m2", "e5m2", "f16"],
    ["s8", "s8", "s32"],
    ["s8", "u8", "s32"],
    ["u8", "s8", "s32"],
    ["u8", "u8", "s32"],
    ["b1", "b1", "s32"],
];

/// A number of columns, another one in each turn.
fn columns(turn: usize, sum: &str) -> usize {
    let columns = 8 * (1 + turn * 11 % 13);
    if sum == "s32" && columns > 32 { columns.next_multiple_of(16) } else { columns }
}

fn assert_right(products: impl IntoIterator<Item = Product>) {
    let wrong: Vec<String> = products
        .into_iter()
        .filter_map(|product| product.run().map(|text| format!("{product:?}: {text}")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_type_is_multiplied_in_every_swizzle() {
    let mut turn = 0;
    let mut products = Vec::new();
    for [a, b, sum] in TYPES {
        for swizzle in [0, 32, 64, 128] {
            turn += 1;
            let a_in_registers = turn % 3 == 0;
            let (columns, adds) = (columns(turn, sum), turn % 4 != 0);
            products.push(Product { a, b, sum, columns, swizzle, a_in_registers, adds, ..PLAIN });
        }
    }
    assert!(products.iter().filter(|product| product.a_in_registers).count() > 14);
    assert_right(products);
}

#[test]
fn matrices_of_16_bits_may_be_transposed() {
    let mut products = Vec::new();
    for (at, swizzle) in [0, 32, 64, 128].into_iter().enumerate() {
        for transposed in [[false, true], [true, false], [true, true]] {
            let ty = ["f16", "bf16"][at % 2];
            let columns = columns(3 * at + usize::from(transposed[0]), "f32");
            products.push(Product { a: ty, b: ty, columns, swizzle, transposed, ..PLAIN });
        }
    }
    assert_right(products);
}

#[test]
fn all_of_a_warpgroup_is_used_by_wide_products() {
    let wide = Product { columns: 256, swizzle: 128, ..PLAIN };
    assert_right([
        wide,
        Product { transposed: [false, true], columns: 248, ..wide },
        Product { a: "u8", b: "s8", sum: "s32", columns: 240, ..wide },
    ]);
}

#[test]
fn signs_and_limits_are_those_of_the_instruction() {
    let negative = |scales: [i64; 2]| Product { scales, columns: 24, ..PLAIN };
    let mut products = vec![negative([-1, 1]), negative([1, -1]), negative([-1, -1])];
    for ty in ["tf32", "e4m3", "bf16"] {
        products.push(Product { a: ty, b: ty, ..negative([-1, 1]) });
        products.push(Product { a: ty, b: ty, a_in_registers: true, ..negative([-1, 1]) });
    }
    products.push(Product { a: "u8", b: "s8", sum: "s32", satfinite: true, ..PLAIN });
    products.push(Product { a: "s8", b: "u8", sum: "s32", satfinite: true, adds: false, ..PLAIN });
    assert!(products.iter().all(|product| bits(product.a) * product.depth() == 256));
    assert_right(products);
}
