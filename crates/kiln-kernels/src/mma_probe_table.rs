//! The table of probes of tensor cores.

use crate::mma_probe::{Fragment, MatrixProbe, MatrixProbeKind};

static RECORDED: &[u8] = include_bytes!("../recorded/h200-matrix.bin");

/// Every form of `mma` but those of sparse matrices and of the first generation, and `ldmatrix`, `stmatrix` and `movmatrix`.
pub fn matrix_probes() -> Vec<MatrixProbe> {
    let mut all = floats();
    all.extend(integers());
    for (name, kind) in [("ldmatrix", MatrixProbeKind::Load), ("stmatrix", MatrixProbeKind::Store)] {
        for (count, trans, space) in tiles() {
            let loads = kind == MatrixProbeKind::Load;
            all.push(MatrixProbe {
                text: format!("{name}.sync.aligned.m8n8.x{count}{trans}.{space}.b16"),
                kind,
                operands: vec![Fragment { registers: if loads { 4 } else { count }, element: "b32" }],
                results: if loads { count } else { 4 },
            });
        }
    }
    all.push(MatrixProbe {
        text: "movmatrix.sync.aligned.m8n8.trans.b16".to_owned(),
        kind: MatrixProbeKind::Transpose,
        operands: vec![Fragment { registers: 1, element: "b32" }],
        results: 1,
    });
    all
}

/// What one H200 answered to every probe with the inputs of seed 0, in the order of the table.
///
/// `None` when the table has changed since and must be recorded again.
pub fn recorded_matrices() -> Option<Vec<&'static [u8]>> {
    let (mark, mut rest) = RECORDED.split_first_chunk()?;
    if u64::from_le_bytes(*mark) != fingerprint() {
        return None;
    }
    let mut lists = Vec::new();
    for probe in matrix_probes() {
        let (list, behind) = rest.split_at_checked(probe.result_bytes())?;
        lists.push(list);
        rest = behind;
    }
    Some(lists)
}

/// A recording as [`recorded_matrices`] reads it from `recorded/h200-matrix.bin`.
pub fn record_matrices(results: &[Vec<u8>]) -> Vec<u8> {
    [&fingerprint().to_le_bytes()[..], &results.concat()].concat()
}

/// A number that changes when the table or its inputs do.
fn fingerprint() -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let each = |hash: u64, probe: MatrixProbe| probe.module().bytes().chain(probe.inputs(0)).fold(hash, step);
    matrix_probes().into_iter().fold(0xcbf2_9ce4_8422_2325, each)
}

fn floats() -> Vec<MatrixProbe> {
    let mut all = Vec::new();
    let mut add = |shapes: &[[usize; 3]], sum, a, b| {
        all.extend(shapes.iter().map(|shape| multiply(*shape, sum, [a, b], "", "")));
    };
    let halves = [[16, 8, 8], [16, 8, 16]];
    add(&halves, "f16", "f16", "f16");
    add(&halves, "f32", "f16", "f16");
    add(&halves, "f32", "bf16", "bf16");
    add(&[[16, 8, 4], [16, 8, 8]], "f32", "tf32", "tf32");
    add(&[[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]], "f64", "f64", "f64");
    for a in ["e4m3", "e5m2"] {
        for b in ["e4m3", "e5m2"] {
            add(&[[16, 8, 16], [16, 8, 32]], "f32", a, b);
            add(&[[16, 8, 16], [16, 8, 32]], "f16", a, b);
        }
    }
    all
}

fn integers() -> Vec<MatrixProbe> {
    let mut all = Vec::new();
    for (names, depths) in [(["s8", "u8"], [16, 16, 32]), (["s4", "u4"], [32, 32, 64])] {
        for (rows, depth) in [8, 16, 16].into_iter().zip(depths) {
            for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for limited in ["", "satfinite."] {
                    all.push(multiply([rows, 8, depth], "s32", [names[a], names[b]], limited, ""));
                }
            }
        }
    }
    for shape in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for count in [".xor.popc", ".and.popc"] {
            all.push(multiply(shape, "s32", ["b1", "b1"], "", count));
        }
    }
    all
}

fn multiply(
    [m, n, k]: [usize; 3],
    sum: &'static str,
    [a, b]: [&'static str; 2],
    limited: &str,
    count: &str,
) -> MatrixProbe {
    let blocks = |element: &str| (k / (4 * (32 / crate::mma_operands::bits(element)).max(1) as usize)).max(1);
    let results = m / 8 * if sum == "f16" { 1 } else { 2 };
    MatrixProbe {
        text: format!("mma.sync.aligned.m{m}n{n}k{k}.row.col.{limited}{sum}.{a}.{b}.{sum}{count}"),
        kind: MatrixProbeKind::Multiply,
        operands: vec![
            Fragment { registers: m / 8 * blocks(a), element: a },
            Fragment { registers: blocks(b), element: b },
            Fragment { registers: results, element: sum },
        ],
        results,
    }
}

fn tiles() -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    [1, 2, 4].into_iter().flat_map(|count| {
        ["", ".trans"].into_iter().flat_map(move |trans| {
            ["shared", "shared::cta"].into_iter().map(move |space| (count, trans, space))
        })
    })
}
