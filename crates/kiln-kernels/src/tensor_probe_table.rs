//! The table of probes of `wmma` and `mma.sp`.

use std::fmt::Write;

use crate::mma_operands::bits;
use crate::tensor_probe::{PAIRS, SINGLES, TensorOperand, TensorProbe};

static RECORDED: &[u8] = include_bytes!("../recorded/h200-tensor.bin");

/// Every form of `wmma`, with both layouts of each matrix, and of `mma.sp` but those of 8-bit floats, with every selector.
pub fn tensor_probes() -> Vec<TensorProbe> {
    let mut all = Vec::new();
    let large = [[16, 16, 16], [32, 8, 16], [8, 32, 16]];
    let mut add = |shapes: &[[usize; 3]], types: [&'static str; 4], front: &str, behind: &str| {
        let is_small = bits(types[0]) < 8;
        for shape in shapes {
            for (a, b) in [("row", "col"), ("row", "row"), ("col", "row"), ("col", "col")] {
                if !is_small || (a, b) == ("row", "col") {
                    let sums = if a == "row" { "row" } else { "col" };
                    all.push(warp_product(*shape, types, [a, b, sums], [front, behind]));
                }
            }
        }
    };
    for (c, d) in [("f16", "f16"), ("f32", "f32"), ("f16", "f32"), ("f32", "f16")] {
        add(&large, ["f16", "f16", c, d], "", "");
    }
    add(&large, ["bf16", "bf16", "f32", "f32"], "", "");
    add(&[[16, 16, 8]], ["tf32", "tf32", "f32", "f32"], "", "");
    for round in ["", ".rn", ".rz", ".rm", ".rp"] {
        add(&[[8, 8, 4]], ["f64"; 4], "", round);
    }
    for limited in ["", ".satfinite"] {
        add(&large, ["s8", "s8", "s32", "s32"], "", limited);
        add(&large, ["u8", "u8", "s32", "s32"], "", limited);
        add(&[[8, 8, 32]], ["s4", "s4", "s32", "s32"], "", limited);
        add(&[[8, 8, 32]], ["u4", "u4", "s32", "s32"], "", limited);
    }
    add(&[[8, 8, 128]], ["b1", "b1", "s32", "s32"], ".xor.popc", "");
    add(&[[8, 8, 128]], ["b1", "b1", "s32", "s32"], ".and.popc", "");
    all.extend(sparse_products());
    all
}

/// `mma.sp` of 8-bit floats. What a GPU answers is not kept.
pub fn sparse_float8_probes() -> Vec<TensorProbe> {
    let types = [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")];
    let forms =
        ["", "::ordered_metadata"].into_iter().flat_map(|ordered| types.map(|types| (ordered, types)));
    forms.map(|(ordered, (a, b))| sparse(ordered, 64, [a, b, "f32"], 0)).collect()
}

/// What one H200 answered to every probe with the inputs of seed 0, in the order of the table.
///
/// `None` when the table has changed since and must be recorded again.
pub fn recorded_tensors() -> Option<Vec<&'static [u8]>> {
    let (mark, mut rest) = RECORDED.split_first_chunk()?;
    if u64::from_le_bytes(*mark) != fingerprint() {
        return None;
    }
    let mut lists = Vec::new();
    for probe in tensor_probes() {
        let (list, behind) = rest.split_at_checked(probe.result_bytes())?;
        lists.push(list);
        rest = behind;
    }
    Some(lists)
}

/// A recording as [`recorded_tensors`] reads it from `recorded/h200-tensor.bin`.
pub fn record_tensors(results: &[Vec<u8>]) -> Vec<u8> {
    [&fingerprint().to_le_bytes()[..], &results.concat()].concat()
}

/// A number that changes when the table or its inputs do.
fn fingerprint() -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let each = |hash: u64, probe: TensorProbe| probe.module().bytes().chain(probe.inputs(0)).fold(hash, step);
    tensor_probes().into_iter().fold(0xcbf2_9ce4_8422_2325, each)
}

fn register(element: &str) -> &'static str {
    match element {
        "f64" => "f64",
        "f32" => "f32",
        _ => "b32",
    }
}

fn list(name: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

fn warp_product(
    [m, n, k]: [usize; 3],
    types: [&'static str; 4],
    [a, b, sums]: [&str; 3],
    [front, behind]: [&str; 2],
) -> TensorProbe {
    let counts = [m * k, k * n, m * n, m * n];
    let operands: Vec<TensorOperand> =
        (0..3).map(|at| TensorOperand { element: types[at], count: counts[at] }).collect();
    let registers = |at: usize| match (types[at], at) {
        ("f16", 0 | 1) => 8,
        (ty, _) => counts[at] / 32 * bits(ty).min(32) as usize / 32,
    };
    let (round, limited) = if behind.starts_with(".r") { (behind, "") } else { ("", behind) };
    let words = match types {
        ["f16", _, c, d] => format!("{d}.{c}"),
        [a, b, c, d] => format!("{d}.{a}.{b}.{c}"),
    };
    let shape = format!("m{m}n{n}k{k}");
    let text = format!("wmma.mma{front}.sync.aligned.{a}.{b}.{shape}{round}.{words}{limited}");
    let mut body = String::new();
    for (at, (name, layout)) in [("a", a), ("b", b), ("c", sums)].into_iter().enumerate() {
        let _ = writeln!(body, ".reg .{} %{name}<{}>;", register(types[at]), registers(at));
        let _ = writeln!(
            body,
            "wmma.load.{name}.sync.aligned.{layout}.{shape}.global.{} {}, [%in+{}];",
            types[at],
            list(name, registers(at)),
            TensorProbe::offset(&operands, at)
        );
    }
    let _ = writeln!(body, ".reg .{} %d<{}>;", register(types[3]), registers(3));
    let [a, b, c, d] = [("a", 0), ("b", 1), ("c", 2), ("d", 3)].map(|(name, at)| list(name, registers(at)));
    let _ = writeln!(body, "{text} {d}, {a}, {b}, {c};");
    let _ = writeln!(body, "wmma.store.d.sync.aligned.{sums}.{shape}.global.{} [%out], {d};", types[3]);
    let results = m * n * bits(types[3]) as usize / 8;
    TensorProbe { text, operands, is_by_thread: false, results, body }
}

fn sparse_products() -> Vec<TensorProbe> {
    let mut all = Vec::new();
    for ordered in ["", "::ordered_metadata"] {
        for (a, b, sum, depths) in [
            ("f16", "f16", "f16", [16, 32]),
            ("f16", "f16", "f32", [16, 32]),
            ("bf16", "bf16", "f32", [16, 32]),
            ("tf32", "tf32", "f32", [8, 16]),
            ("s8", "s8", "s32", [32, 64]),
            ("u8", "s8", "s32", [32, 64]),
            ("s4", "s4", "s32", [64, 128]),
            ("u4", "s4", "s32", [64, 128]),
        ] {
            for (depth, is_deep) in depths.into_iter().zip([false, true]) {
                let selectors = match (bits(a) >= 16, is_deep) {
                    (true, false) => 4,
                    (true, true) | (false, false) => 2,
                    (false, true) => 1,
                };
                all.extend((0..selectors).map(|selector| sparse(ordered, depth, [a, b, sum], selector)));
            }
        }
    }
    all
}

fn sparse(ordered: &str, depth: usize, [a, b, sum]: [&'static str; 3], selector: usize) -> TensorProbe {
    let per = 32 / bits(a) as usize;
    let sums = if sum == "f16" { 2 } else { 4 };
    let registers = [depth / 4 / per, depth / 4 / per, sums];
    let metadata = if a == "tf32" { SINGLES } else { PAIRS };
    let counts = [registers[0] * per, registers[1] * per, 4, 1];
    let operands: Vec<TensorOperand> = [a, b, sum, metadata]
        .into_iter()
        .zip(counts)
        .map(|(element, count)| TensorOperand { element, count })
        .collect();
    let form = format!("mma.sp{ordered}.sync.aligned.m16n8k{depth}.row.col.{sum}.{a}.{b}.{sum}");
    let mut body = format!(".reg .b32 %e;\n.reg .{} %d<{sums}>;\n", register(sum));
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        let ty = if name == "c" { register(sum) } else { "b32" };
        let _ = writeln!(body, ".reg .{ty} %{name}<{}>;", registers[at]);
        let start = TensorProbe::offset(&operands, at);
        for place in 0..registers[at] {
            let _ = writeln!(body, "ld.global.{ty} %{name}{place}, [%in+{}];", start + 4 * place);
        }
    }
    let _ = writeln!(body, "ld.global.b32 %e, [%in+{}];", TensorProbe::offset(&operands, 3));
    let [d, a, b, c] = [("d", sums), ("a", registers[0]), ("b", registers[1]), ("c", sums)]
        .map(|(name, count)| list(name, count));
    let _ = writeln!(body, "{form} {d}, {a}, {b}, {c}, %e, {selector};");
    for place in 0..sums {
        let _ = writeln!(body, "st.global.{} [%out+{}], %d{place};", register(sum), 4 * place);
    }
    let text = format!("{form} with selector {selector}");
    TensorProbe { text, operands, is_by_thread: true, results: 4 * sums, body }
}
