//! Surfaces: loads, stores and reductions, inside and outside.

use kiln_ptx::exec::{TexelFormat, TexelKind, TextureObject};

use crate::exec_texture::{F32, run, singles};

const BYTES: TexelFormat = TexelFormat { kind: TexelKind::U8, channels: 4 };

/// A plane of three rows with four texels each.
fn plane(address: u64) -> TextureObject {
    TextureObject::image(address, F32, [4, 3, 1])
}

fn numbers() -> Vec<u8> {
    singles(&(0..12).map(|number| number as f32).collect::<Vec<f32>>())
}

fn told(body: &str, inputs: &[[u32; 4]], words: &str) {
    let (_, _, outcome) = run(&numbers(), plane, body, inputs);
    let found: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
    assert!(found.iter().any(|text| text.contains(words)), "{body}: `{words}` is not in {found:?}");
}

#[test]
fn loads_and_stores_count_bytes_in_a_row() {
    let body = "suld.b.2d.b32.trap {%a}, [%tex, {%x, %y}];\nsuld.b.2d.v2.b32.trap {%b, %c}, [plane, {%x, %y}];\nadd.u32 %d, %a, 0;\nsust.b.2d.b32.trap [%tex, {%x, %y}], {%z};";
    let (results, texels, outcome) = run(&numbers(), plane, body, &[[8, 1, 77, 0], [0, 2, 78, 0]]);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(results[0][..3].iter().map(|bits| f32::from_bits(*bits)).collect::<Vec<_>>(), [6.0, 6.0, 7.0]);
    assert_eq!(results[1][..3].iter().map(|bits| f32::from_bits(*bits)).collect::<Vec<_>>(), [8.0, 8.0, 9.0]);
    assert_eq!(texels[24..28], 77u32.to_le_bytes());
    assert_eq!(texels[32..36], 78u32.to_le_bytes());
    let body = "suld.b.2d.b8.trap {%h0}, [%tex, {%x, %y}];\ncvt.u32.u16 %a, %h0;\nmov.u16 %h1, 0xfe;\nsust.b.2d.b8.trap [%tex, {%x, %y}], {%h1};";
    let bytes: Vec<u8> = (0..16).collect();
    let image = |address| TextureObject::image(address, BYTES, [2, 2, 1]);
    let (results, texels, outcome) = run(&bytes, image, body, &[[3, 1, 0, 0]]);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!((results[0][0], texels[11]), (11, 0xfe));
}

#[test]
fn formatted_stores_count_texels_and_convert() {
    let body = "sust.p.2d.v4.b32.trap [%tex, {%x, %y}], {%z, %w, %z, %w};";
    let stored = |kind: TexelKind, values: [i32; 2]| {
        let image = |address| TextureObject::image(address, TexelFormat { kind, channels: 4 }, [2, 2, 1]);
        let content = vec![0; 16 * kind.bytes() as usize];
        let (_, texels, outcome) = run(&content, image, body, &[[1, 1, values[0] as u32, values[1] as u32]]);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        texels[12 * kind.bytes() as usize..].to_vec()
    };
    assert_eq!(stored(TexelKind::U8, [300, 7]), [255, 7, 255, 7]);
    assert_eq!(stored(TexelKind::S8, [300, -300]), [0x7f, 0x80, 0x7f, 0x80]);
    assert_eq!(stored(TexelKind::S8, [-5, 100]), [0xfb, 100, 0xfb, 100]);
    assert_eq!(stored(TexelKind::U16, [70_000, 258])[..4], [0xff, 0xff, 2, 1]);
    assert_eq!(stored(TexelKind::S16, [70_000, -70_000])[..4], [0xff, 0x7f, 0, 0x80]);
}

#[test]
fn outside_is_a_finding_the_edge_or_nothing() {
    let load = |mode: &str| format!("suld.b.2d.b32.{mode} {{%a}}, [%tex, {{%x, %y}}];");
    for place in [[16, 0, 0, 0], [0, 3, 0, 0], [(-4_i32) as u32, 0, 0, 0]] {
        told(&load("trap"), &[place], "outside of a surface with rows of 16 bytes, 3 rows");
        let (results, _, outcome) = run(&numbers(), plane, &load("zero"), &[place]);
        assert!(outcome.is_clean() && results[0][0] == 0);
    }
    let (results, _, outcome) = run(&numbers(), plane, &load("clamp"), &[[100, 100, 0, 0]]);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(f32::from_bits(results[0][0]), 11.0);
    // What is read ends with the row, however much it is; in front of the row it begins with it.
    let pair = "suld.b.2d.v2.b32.clamp {%a, %b}, [%tex, {%x, %y}];";
    for (place, expected) in [([100, 100], [10.0, 11.0]), ([-8_i32 as u32, -1_i32 as u32], [0.0, 1.0])] {
        let (results, _, outcome) = run(&numbers(), plane, pair, &[[place[0], place[1], 0, 0]]);
        assert!(outcome.is_clean(), "{:?}", outcome.findings);
        assert_eq!([results[0][0], results[0][1]].map(f32::from_bits), expected);
    }
    let store = "sust.b.2d.b32.zero [%tex, {%x, %y}], {%z};";
    assert_eq!(run(&numbers(), plane, store, &[[16, 0, 5, 0]]).1, numbers());
    told(&load("trap"), &[[2, 0, 0, 0]], "misaligned");
}

#[test]
fn reductions_update_and_stores_race() {
    let body = "sured.b.add.2d.u32.trap [%tex, {%x, %y}], %z;";
    let (_, texels, outcome) = run(&[0; 48], plane, body, &[[4, 1, 5, 0]; 40]);
    assert!(outcome.is_clean(), "{:?}", outcome.findings);
    assert_eq!(texels[20..24], 200u32.to_le_bytes());
    let store = "sust.b.2d.b32.trap [%tex, {%x, %y}], {%t};";
    told(store, &[[0; 4]; 40], "race");
    // A texture is read as a constant: memory that the launch writes is not seen.
    let both =
        "tex.2d.v4.f32.s32 {%a, %b, %c, %d}, [%tex, {%y, %y}];\nsust.b.2d.b32.trap [%tex, {%x, %y}], {%z};";
    told(both, &[[0, 0, 1, 0]], "non-coherent");
    for wrong in
        ["suld.b.cube.b32.trap {%a}, [%tex, {%x, %y}];", "sured.b.xor.2d.u32.trap [%tex, {%x, %y}], %z;"]
    {
        told(wrong, &[[0; 4]], "with these operands");
    }
}
