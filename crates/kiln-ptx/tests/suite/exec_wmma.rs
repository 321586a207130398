//! `wmma`: products are those of the matrices in memory, for every shape, type, layout and stride, and misuse is told.

use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};
use kiln_ptx::{EffectAnswer, PtxModule};

/// One product: its shape, types, layouts, and by how many elements lines are longer than they must be.
#[derive(Clone, Copy, Debug)]
struct Product {
    shape: [usize; 3],
    types: [&'static str; 4],
    layouts: [&'static str; 4],
    more: usize,
    /// `.rn` or `.xor.popc` and the like.
    word: &'static str,
}

fn bits(ty: &str) -> usize {
    match ty {
        "f64" => 64,
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "s8" | "u8" => 8,
        "s4" | "u4" => 4,
        _ => 1,
    }
}

/// A small whole number as an element.
fn encode(ty: &str, value: i64) -> u64 {
    let half = |bits: u32, bias: i64, fraction: u32| match value {
        0 => 0,
        _ => {
            let top = value.unsigned_abs().ilog2();
            let rest = (value.unsigned_abs() - (1 << top)) << (fraction - top);
            u64::from(value < 0) << (bits - 1) | ((i64::from(top) + bias) as u64) << fraction | rest
        }
    };
    match ty {
        "f64" => (value as f64).to_bits(),
        "f32" | "tf32" => u64::from((value as f32).to_bits()),
        "f16" => half(16, 15, 10),
        "bf16" => half(16, 127, 7),
        _ => value as u64 & (u64::MAX >> (64 - bits(ty))),
    }
}

/// The values that elements of a type take here.
fn value(ty: &str, at: usize) -> i64 {
    let mixed = (at * 7919 + at / 13 * 31) % 97;
    match ty {
        "u8" => (mixed * 2) as i64,
        "s8" => mixed as i64 - 48,
        "u4" => (mixed % 16) as i64,
        "s4" => (mixed % 16) as i64 - 8,
        "b1" => (mixed % 2) as i64,
        _ => (mixed % 9) as i64 - 4,
    }
}

struct Matrix {
    rows: usize,
    columns: usize,
    ty: &'static str,
    row_major: bool,
    stride: usize,
}

impl Matrix {
    fn place(&self, row: usize, column: usize) -> usize {
        if self.row_major { row * self.stride + column } else { column * self.stride + row }
    }

    fn bytes(&self) -> usize {
        let lines = if self.row_major { self.rows } else { self.columns };
        (lines * self.stride * bits(self.ty)).div_ceil(8)
    }

    fn values(&self, seed: usize) -> Vec<i64> {
        (0..self.rows * self.columns).map(|at| value(self.ty, at + seed)).collect()
    }

    fn pack(&self, values: &[i64]) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes()];
        for (at, value) in values.iter().enumerate() {
            let bit = self.place(at / self.columns, at % self.columns) * bits(self.ty);
            let element = encode(self.ty, *value);
            match bits(self.ty) {
                small @ (1 | 4) => {
                    bytes[bit / 8] |= (element << (bit % 8)) as u8 & (((1 << small) - 1) << (bit % 8)) as u8
                }
                wide => bytes[bit / 8..][..wide / 8].copy_from_slice(&element.to_le_bytes()[..wide / 8]),
            }
        }
        bytes
    }
}

fn registers(product: &Product, at: usize) -> usize {
    let [m, n, k] = product.shape;
    let ty = product.types[at];
    let elements = [m * k, k * n, m * n, m * n][at];
    match (ty, at) {
        ("f16", 0 | 1) => 8,
        _ => elements * bits(ty).min(32) / 32 / 32,
    }
}

impl Product {
    fn matrices(&self) -> [Matrix; 4] {
        let [m, n, k] = self.shape;
        let sizes = [(m, k), (k, n), (m, n), (m, n)];
        std::array::from_fn(|at| {
            let ((rows, columns), row_major) = (sizes[at], self.layouts[at] == "row");
            let stride = if row_major { columns } else { rows } + self.more;
            Matrix { rows, columns, ty: self.types[at], row_major, stride }
        })
    }

    /// A kernel with the matrices behind four pointers; `space` is that of A and B.
    fn module(&self, space: &str) -> String {
        let Self { shape: [m, n, k], types, layouts, word, .. } = *self;
        let register = |at: usize| match types[at] {
            "f64" => "f64",
            "f32" => "f32",
            _ => "b32",
        };
        let names = ["a", "b", "c", "d"];
        let list = |at: usize| {
            let all: Vec<String> = (0..registers(self, at)).map(|r| format!("%{}{r}", names[at])).collect();
            format!("{{{}}}", all.join(", "))
        };
        let shape = format!("m{m}n{n}k{k}");
        let matrices = self.matrices();
        let mut text = String::from(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd)\n{\n.reg .b64 %p<4>;\n",
        );
        for (at, name) in names.iter().enumerate() {
            text += &format!(".reg .{} %{}<{}>;\n", register(at), name, registers(self, at));
            text += &format!("ld.param.u64 %p{at}, [p{name}];\n");
        }
        for at in 0..3 {
            text += &format!(
                "wmma.load.{}.sync.aligned.{}.{shape}{}.{} {}, [%p{at}]{};\n",
                names[at],
                layouts[at],
                if at < 2 { space } else { ".global" },
                types[at],
                list(at),
                if self.more == 0 { String::new() } else { format!(", {}", matrices[at].stride) }
            );
        }
        let forms = match types {
            ["f16", _, c, d] => format!("{d}.{c}"),
            [a, b, c, d] => format!("{d}.{a}.{b}.{c}"),
        };
        let (front, round) = if word.contains("popc") { (word, "") } else { ("", word) };
        text += &format!(
            "wmma.mma{front}.sync.aligned.{}.{}.{shape}{round}.{forms} {}, {}, {}, {};\n",
            layouts[0],
            layouts[1],
            list(3),
            list(0),
            list(1),
            list(2)
        );
        let stride = matrices[3].stride;
        text += &format!(
            "wmma.store.d.sync.aligned.{}.{shape}.{} [%p3], {}, {stride};\nret;\n}}\n",
            layouts[3],
            types[3],
            list(3)
        );
        text
    }

    /// D as it is here, and as it should be.
    fn run(&self, space: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
        let matrices = self.matrices();
        let values: Vec<Vec<i64>> = (0..3).map(|at| matrices[at].values(at * 1000)).collect();
        let [m, n, k] = self.shape;
        let mut wanted = Vec::new();
        for row in 0..m {
            for column in 0..n {
                let product = |at: usize| match (values[0][row * k + at], values[1][at * n + column]) {
                    (a, b) if self.word == ".xor.popc" => a ^ b,
                    (a, b) => a * b,
                };
                wanted.push((0..k).map(product).sum::<i64>() + values[2][row * n + column]);
            }
        }
        let module = PtxModule::parse(&self.module(space)).unwrap();
        let program = ExecProgram::new(module);
        let mut memory = SimpleMemory::new();
        let mut arguments = Vec::new();
        for (matrix, values) in matrices.iter().zip(&values) {
            arguments.extend(memory.allocate_with(&matrix.pack(values)).to_le_bytes());
        }
        let out = memory.allocate_with(&vec![0; matrices[3].bytes()]);
        arguments.extend(out.to_le_bytes());
        let entry = program.entry("k").unwrap();
        let outcome =
            entry.launch(&LaunchShape::linear(1, 32), &arguments, &[], &memory, &Options::default()).unwrap();
        match outcome.findings.first() {
            Some(finding) => Err(finding.to_string()),
            None => Ok((memory.read(out, matrices[3].bytes() as u64).unwrap(), matrices[3].pack(&wanted))),
        }
    }
}

fn products() -> Vec<Product> {
    let mut all = Vec::new();
    let mut add = |shapes: &[[usize; 3]], types: [&'static str; 4], word: &'static str, is_small: bool| {
        for shape in shapes {
            for layouts in 0..8 {
                let pick = |bit: usize| if layouts >> bit & 1 == 0 { "row" } else { "col" };
                if is_small && (layouts & 3) != 2 {
                    continue;
                }
                let layouts = [pick(0), pick(1), pick(2), pick(2)];
                for more in [0, 128] {
                    all.push(Product { shape: *shape, types, layouts, more, word });
                }
            }
        }
    };
    let large = [[16, 16, 16], [32, 8, 16], [8, 32, 16]];
    for (c, d) in [("f16", "f16"), ("f32", "f32"), ("f16", "f32"), ("f32", "f16")] {
        add(&large, ["f16", "f16", c, d], "", false);
    }
    add(&large, ["bf16", "bf16", "f32", "f32"], "", false);
    for (a, b) in [("s8", "s8"), ("u8", "u8"), ("s8", "u8"), ("u8", "s8")] {
        add(&large, [a, b, "s32", "s32"], "", false);
    }
    add(&[[16, 16, 8]], ["tf32", "tf32", "f32", "f32"], "", false);
    for word in ["", ".rn", ".rz", ".rm", ".rp"] {
        add(&[[8, 8, 4]], ["f64"; 4], word, false);
    }
    for (a, b) in [("s4", "s4"), ("u4", "u4"), ("s4", "u4"), ("u4", "s4")] {
        add(&[[8, 8, 32]], [a, b, "s32", "s32"], "", true);
    }
    add(&[[8, 8, 128]], ["b1", "b1", "s32", "s32"], ".xor.popc", true);
    add(&[[8, 8, 128]], ["b1", "b1", "s32", "s32"], ".and.popc", true);
    all
}

#[test]
fn every_product_is_that_of_the_matrices_in_memory() {
    let mut wrong = Vec::new();
    for product in products() {
        for space in ["", ".global"] {
            match product.run(space) {
                Ok((found, wanted)) if found == wanted => {}
                Ok(_) => wrong.push(format!("{product:?}: wrong")),
                Err(text) => wrong.push(format!("{product:?}: {text}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}

#[test]
fn effects_name_what_is_loaded_and_stored() {
    let product = products()[0];
    let module = PtxModule::parse(&product.module(".global")).unwrap();
    let effects = module.effects(module.find_function("k").unwrap()).unwrap();
    let found: Vec<_> = effects.pointers.iter().map(|p| (p.effect.reads, p.effect.writes)).collect();
    let (yes, no) = (EffectAnswer::Yes, EffectAnswer::No);
    assert_eq!(found, [(yes, no), (yes, no), (yes, no), (no, yes)]);
    assert!(module.facts(module.find_function("k").unwrap()).unwrap().unsupported.is_empty());
}

/// The findings of one warp that runs `body` with 2 KiB of shared memory behind `%at` and half of that in global memory behind `%out`.
fn findings(header: &str, threads: u32, body: &str) -> Vec<String> {
    let text = format!(
        "{header}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n.reg .b32 %r<16>, %lane, %at, %s;\n.reg .b64 %out, %g;\n\
         .reg .f32 %f<8>;\n.reg .pred %p;\n.shared .align 128 .b8 cells[2048];\nld.param.u64 %out, [out];\nmov.u32 %lane, %tid.x;\nmov.u32 %at, cells;\n{body}\nret;\n}}\n"
    );
    let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
    let mut memory = SimpleMemory::new();
    let out = memory.allocate_with(&[0; 1024]);
    let shape = LaunchShape::linear(1, threads);
    let options = Options { checks: Checks::ALL, ..Options::default() };
    let entry = program.entry("k").unwrap();
    let outcome = entry.launch(&shape, &out.to_le_bytes(), &[], &memory, &options).unwrap();
    outcome.findings.iter().map(ToString::to_string).collect()
}

const HOPPER: &str = ".version 8.0\n.target sm_90";
const EIGHT: &str = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}";
const OTHERS: &str = "{%r8, %r9, %r10, %r11, %r12, %r13, %r14, %r15}";
const FLOATS: &str = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}";

fn told(found: &[String], words: &str) {
    assert!(found.iter().any(|text| text.contains(words)), "`{words}` is not in {found:?}");
}

fn load_a(address: &str, stride: u32) -> String {
    format!("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {EIGHT}, [{address}], {stride};\n")
}

#[test]
fn a_matrix_out_of_bounds_or_off_its_alignment_is_found() {
    assert_eq!(findings(HOPPER, 32, &load_a("%out", 32)), Vec::<String>::new());
    told(&findings(HOPPER, 32, &load_a("%out", 40)), "out of bounds: read of 4 bytes at global address");
    told(
        &findings(HOPPER, 32, &load_a("%out+8", 16)),
        "no multiple of 32, as the start of this matrix must be",
    );
    told(
        &findings(HOPPER, 32, &load_a("%out", 20)),
        "a stride (leading dimension) of 40 bytes, which is no multiple of 16",
    );
}

#[test]
fn the_whole_warp_must_name_one_matrix() {
    told(&findings(HOPPER, 16, &load_a("%out", 16)), "all 32 threads of the warp must");
    let part = format!("setp.lt.u32 %p, %lane, 4;\n@%p bra end;\n{}end:\n", load_a("%out", 16));
    told(&findings(HOPPER, 32, &part), "all 32 threads of the warp must");
    let apart = format!("mul.wide.u32 %g, %lane, 32;\nadd.u64 %g, %g, %out;\n{}", load_a("%g", 0));
    told(&findings(HOPPER, 32, &apart), "threads of the warp name different matrices: the address");
    let stride = "and.b32 %s, %lane, 16;\nwmma.load.a.sync.aligned.row.m16n16k16.global.f16";
    let found = findings(HOPPER, 32, &format!("{stride} {EIGHT}, [%out], %s;"));
    told(&found, "threads of the warp name different matrices: the stride");
}

#[test]
fn what_lanes_store_as_a_matrix_needs_a_barrier_before_it_is_loaded() {
    let store = format!("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%at], {FLOATS}, 16;\n");
    let set: String = (0..8).map(|at| format!("mov.f32 %f{at}, 0f00000000;\n")).collect();
    let load = format!("wmma.load.c.sync.aligned.col.m16n16k16.shared.f32 {FLOATS}, [%at], 16;\n");
    told(&findings(HOPPER, 32, &format!("{set}{store}{load}")), "race");
    let ordered = format!("{set}{store}bar.warp.sync 0xffffffff;\n{load}");
    assert_eq!(findings(HOPPER, 32, &ordered), Vec::<String>::new());
}

#[test]
fn elements_that_were_never_written_are_told_where_their_product_is_used() {
    let load = format!("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {EIGHT}, [%at], 16;\n");
    let load_b = format!("wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {OTHERS}, [%out], 16;\n");
    let set: String = (0..8).map(|at| format!("mov.f32 %f{at}, 0f00000000;\n")).collect();
    let multiply =
        format!("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {FLOATS}, {EIGHT}, {OTHERS}, {FLOATS};\n");
    let used = "setp.gt.f32 %p, %f0, 0f00000000;\n@%p trap;\n";
    told(&findings(HOPPER, 32, &format!("{load}{load_b}{set}{multiply}{used}")), "uninitialised");
}

#[test]
fn fragments_of_another_kind_are_refused_with_the_line_of_their_load() {
    let load_b = format!("wmma.load.b.sync.aligned.row.m16n16k16.global.f16 {OTHERS}, [%out], 16;\n");
    let set: String = (0..8).map(|at| format!("mov.f32 %f{at}, 0f00000000;\n")).collect();
    let multiply = |layouts: &str, a: &str, b: &str| {
        let product =
            format!("wmma.mma.sync.aligned.{layouts}.m16n16k16.f32.f32 {FLOATS}, {a}, {b}, {FLOATS};\n");
        findings(HOPPER, 32, &format!("{}{load_b}{set}{product}", load_a("%out", 16)))
    };
    assert_eq!(multiply("row.row", EIGHT, OTHERS), Vec::<String>::new());
    told(&multiply("row.row", EIGHT, EIGHT), "is given a fragment that was loaded at PTX line 14");
    told(&multiply("col.row", EIGHT, OTHERS), "is given a fragment that was loaded at PTX line 14");
}

#[test]
fn versions_and_targets_without_the_instruction_are_refused() {
    let old = findings(".version 5.9\n.target sm_62", 32, &load_a("%out", 16));
    told(&old, "requires PTX 6.0 and sm_70 or newer; the module is PTX 5.9 for sm_62");
    told(&old, "PTX line 14");
    let small = findings(".version 8.0\n.target sm_61", 32, &load_a("%out", 16));
    told(&small, "requires PTX 6.0 and sm_70 or newer; the module is PTX 8.0 for sm_61");
    let double = "wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%g, %g}, [%out], 8;";
    told(&findings(".version 8.0\n.target sm_75", 32, double), "requires PTX 7.0 and sm_80");
}

#[test]
fn forms_that_do_not_exist_are_refused_by_name() {
    for form in [
        "wmma.load.a.sync.aligned.row.m16n16k32.global.f16",
        "wmma.load.a.sync.aligned.col.m8n8k32.global.s4",
        "wmma.load.d.sync.aligned.row.m16n16k16.global.f32",
    ] {
        told(&findings(HOPPER, 32, &format!("{form} {EIGHT}, [%out], 16;")), "wmma.load");
    }
    let product = "wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32.satfinite";
    told(&findings(HOPPER, 32, &format!("{product} {FLOATS}, {EIGHT}, {EIGHT}, {FLOATS};")), "wmma.mma");
}

#[test]
fn the_rounding_of_doubles_may_stand_before_or_behind_the_types() {
    let product = |form: &str| {
        let loads = "wmma.load.a.sync.aligned.row.m8n8k4.global.f64 {%d0}, [%out];\n\
                     wmma.load.b.sync.aligned.col.m8n8k4.global.f64 {%d1}, [%out];\n\
                     wmma.load.c.sync.aligned.row.m8n8k4.global.f64 {%d2, %d3}, [%out];\n";
        let text = format!(
            ".reg .f64 %d<4>;\n{loads}wmma.mma.sync.aligned.row.col.m8n8k4{form} {{%d2, %d3}}, {{%d0}}, {{%d1}}, {{%d2, %d3}};\n"
        );
        findings(HOPPER, 32, &text)
    };
    for form in [".f64.f64.f64.f64", ".rz.f64.f64.f64.f64", ".f64.f64.f64.f64.rn", ".f64.f64.f64.f64.rp"] {
        assert_eq!(product(form), Vec::<String>::new(), "{form}");
    }
    told(&product(".rn.f64.f64.f64.f64.rn"), "wmma.mma");
}
