//! `wgmma`: products of every type, layout and swizzle are those of the whole matrices.

use crate::warpgroup_kernel::{Product, bits};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

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

#[test]
fn a_subnormal_byte_counts_as_large_as_the_smallest_normal_one() {
    // One element of each row of A is 2^-9, all of B is one. Of C so much counts as lies less than 14 bits below 2^-6, as on an H200.
    let product = |element: u32, c: u32| -> Vec<u32> {
        let text = format!(
            ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %p, %o, %x;\n.reg .b32 %t, %r<4>, %a<4>;\n\
             .reg .f32 %d<4>;\n.reg .pred %q, %adds;\n.shared .align 128 .b8 s[512];\nld.param.u64 %p, [p];\nmov.u32 %t, %tid.x;\nmov.u32 %r0, s;\n\
             mad.lo.u32 %r1, %t, 4, %r0;\nst.shared.b32 [%r1], 0x38383838;\nfence.proxy.async;\nbar.sync 0;\nand.b32 %r2, %t, 3;\nsetp.eq.u32 %q, %r2, 0;\n\
             selp.b32 %a0, {element}, 0, %q;\nmov.b32 %a1, %a0;\nmov.b32 %a2, 0;\nmov.b32 %a3, 0;\nmov.b32 %d0, {c};\nmov.b32 %d1, {c};\nmov.b32 %d2, {c};\n\
             mov.b32 %d3, {c};\nshr.u32 %r0, %r0, 4;\ncvt.u64.u32 %x, %r0;\nor.b64 %x, %x, {};\nsetp.eq.u32 %adds, 0, 0;\nwgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {{%d0, %d1, %d2, %d3}}, {{%a0, %a1, %a2, %a3}}, %x, %adds, 1, 1;\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\nmul.wide.u32 %o, %t, 16;\nadd.u64 %p, %p, %o;\n\
             st.global.f32 [%p], %d0;\nst.global.f32 [%p+4], %d1;\nst.global.f32 [%p+8], %d2;\nst.global.f32 [%p+12], %d3;\nret;\n}}\n",
            8u64 << 16 | 16 << 32
        );
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}")));
        let mut memory = SimpleMemory::new();
        let at = memory.allocate(128 * 16);
        let options = Options { checks: Checks::ALL, ..Options::default() };
        let entry = program.entry("k").unwrap();
        let shape = LaunchShape::linear(1, 128);
        let outcome = entry.launch(&shape, &at.to_le_bytes(), &[], &memory, &options).unwrap();
        assert!(outcome.is_clean(), "{:#?}", outcome.findings);
        let bytes = memory.read(at, 128 * 16).unwrap();
        bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    };
    let power = |exponent: i32| 2.0f32.powi(exponent).to_bits();
    assert_eq!(product(1, power(-19)), [power(-9) | 1 << 13; 512]);
    assert_eq!(product(1, power(-20)), [power(-9); 512]);
    // The smallest normal number is 2^-6, and the limit is the same.
    assert_eq!(product(8, power(-19)), [power(-6) | 1 << 10; 512]);
    assert_eq!(product(8, power(-20)), [power(-6); 512]);
}
