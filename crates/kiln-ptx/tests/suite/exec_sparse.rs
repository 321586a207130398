//! `mma.sp`: products are those of the whole matrices, and metadata that names no two elements is told.

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, LaunchShape, Options, SimpleMemory};

/// One form: the types of A and B, its depth, and the type of C and D.
#[derive(Clone, Copy, Debug)]
struct Form {
    ty: &'static str,
    /// The type of B.
    other: &'static str,
    depth: usize,
    sum: &'static str,
    ordered: bool,
    selector: usize,
}

fn bits(ty: &str) -> usize {
    match ty {
        "f32" | "tf32" | "s32" => 32,
        "f16" | "bf16" => 16,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        _ => 4,
    }
}

/// A whole number from -4 to 4 as an element.
fn encode(ty: &str, value: i64) -> u64 {
    let index = value.unsigned_abs() as usize;
    let sign = |bits: u32| u64::from(value < 0) << bits;
    match ty {
        "f32" | "tf32" => u64::from((value as f32).to_bits()),
        "f16" => sign(15) | [0, 0x3c00, 0x4000, 0x4200, 0x4400][index],
        "bf16" => sign(15) | [0, 0x3f80, 0x4000, 0x4040, 0x4080][index],
        "e4m3" => sign(7) | [0, 0x38, 0x40, 0x44, 0x48][index],
        "e5m2" => sign(7) | [0, 0x3c, 0x40, 0x42, 0x44][index],
        _ => value as u64 & (u64::MAX >> (64 - bits(ty))),
    }
}

fn number(ty: &str, at: usize) -> i64 {
    let value = (at * 7919 + at / 7 * 13) % 9;
    if ty.starts_with('u') { value as i64 % 5 } else { value as i64 - 4 }
}

/// Packs what lanes hold: 32 lists of elements, as words.
fn words(ty: &str, lanes: &[Vec<i64>]) -> Vec<Vec<u32>> {
    let per = 32 / bits(ty);
    let word = |part: &[i64]| {
        part.iter()
            .enumerate()
            .fold(0, |word, (at, value)| word | (encode(ty, *value) as u32) << (at * bits(ty)))
    };
    lanes.iter().map(|lane| lane.chunks(per).map(word).collect()).collect()
}

impl Form {
    fn text(&self) -> String {
        let Self { ty, other, depth, sum, ordered, .. } = self;
        let ordered = if *ordered { "::ordered_metadata" } else { "" };
        format!("mma.sp{ordered}.sync.aligned.m16n8k{depth}.row.col.{sum}.{ty}.{other}.{sum}")
    }

    /// How many elements a chunk has, and how many stand together.
    fn chunk(&self) -> (usize, usize) {
        match bits(self.ty) {
            32 => (2, 1),
            4 => (8, 2),
            _ => (4, 1),
        }
    }

    /// The elements of a chunk that are there.
    fn there(&self, row: usize, chunk: usize) -> Vec<usize> {
        let pick = (row * 5 + chunk * 3) % 6;
        let pair = [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]][pick];
        match self.chunk() {
            (2, _) => vec![pick % 2],
            (_, together) => {
                pair.iter().flat_map(|at| (0..together).map(move |part| at * together + part)).collect()
            }
        }
    }

    /// Its four bits of metadata.
    fn index(&self, row: usize, chunk: usize) -> u32 {
        let there = self.there(row, chunk);
        match self.chunk() {
            (2, _) => [0b0100, 0b1110][there[0]],
            (_, together) => (there[0] / together + there[together] / together * 4) as u32,
        }
    }

    /// The metadata of every lane, as the PTX ISA draws it.
    fn metadata(&self) -> Vec<u32> {
        let chunks = self.depth / self.chunk().0;
        let mut words = vec![0xffff_ffff; 32];
        words.iter_mut().enumerate().filter(|(lane, _)| self.gives(*lane)).for_each(|(_, word)| *word = 0);
        for row in 0..16 {
            for chunk in 0..chunks {
                let (group, below) = (row % 8, row / 8);
                let is_small = bits(self.ty) <= 8;
                let (thread, shift) = match (chunks, is_small) {
                    (4, _) => (self.selector, 16 * below + 4 * chunk),
                    (8, false) => (2 * self.selector + chunk / 4, 16 * below + 4 * (chunk % 4)),
                    (8, true) => (2 * self.selector + below, 4 * chunk),
                    _ => (2 * (chunk / 8) + below, 4 * (chunk % 8)),
                };
                words[4 * group + thread] |= self.index(row, chunk) << shift;
            }
        }
        words
    }

    fn gives(&self, lane: usize) -> bool {
        match self.depth / self.chunk().0 {
            4 => lane % 4 == self.selector,
            8 => lane % 4 / 2 == self.selector,
            _ => true,
        }
    }

    /// A, B and C of every lane, and what D should be.
    fn fragments(&self) -> ([Vec<Vec<u32>>; 3], Vec<Vec<u32>>) {
        let (per, chunk) = (32 / bits(self.ty), self.chunk().0);
        let mut a = vec![0; 16 * self.depth];
        let mut packed = vec![Vec::new(); 16];
        for row in 0..16 {
            for at in 0..self.depth / chunk {
                for column in self.there(row, at) {
                    let value = number(self.ty, row * self.depth + at * chunk + column);
                    a[row * self.depth + at * chunk + column] = value;
                    packed[row].push(value);
                }
            }
        }
        let b = |row: usize, column: usize| number(self.other, 5000 + row * 8 + column);
        let c = |row: usize, column: usize| number(self.sum, 9000 + row * 8 + column);
        let d = |row: usize, column: usize| {
            c(row, column) + (0..self.depth).map(|at| a[row * self.depth + at] * b(at, column)).sum::<i64>()
        };
        let lanes = |of: &dyn Fn(usize) -> Vec<i64>| (0..32).map(of).collect::<Vec<_>>();
        let a = lanes(&|lane| {
            let blocks = self.depth / 2 / (4 * per);
            let registers = (0..2 * blocks).flat_map(|register| (0..per).map(move |part| (register, part)));
            registers
                .map(|(register, part)| {
                    packed[lane / 4 + 8 * (register % 2)][lane % 4 * per + part + 4 * per * (register / 2)]
                })
                .collect()
        });
        let b = lanes(&|lane| {
            let registers =
                (0..self.depth / (4 * per)).flat_map(|register| (0..per).map(move |part| (register, part)));
            registers
                .map(|(register, part)| b(lane % 4 * per + part + 4 * per * register, lane / 4))
                .collect()
        });
        let sums = |of: &dyn Fn(usize, usize) -> i64| {
            lanes(&|lane| (0..4).map(|at| of(lane / 4 + 8 * (at / 2), lane % 4 * 2 + at % 2)).collect())
        };
        let all = [words(self.ty, &a), words(self.other, &b), words(self.sum, &sums(&c))];
        let wanted: Vec<Vec<u32>> = sums(&d)
            .iter()
            .map(|lane| match self.sum {
                "f16" => lane.chunks(2).map(|pair| half(pair[0]) | half(pair[1]) << 16).collect(),
                "f32" => lane.iter().map(|value| (*value as f32).to_bits()).collect(),
                _ => lane.iter().map(|value| *value as u32).collect(),
            })
            .collect();
        (all, wanted)
    }

    /// D of every lane, or what was found.
    fn run(&self, target: &str, metadata: &[u32]) -> Result<Vec<Vec<u32>>, Vec<String>> {
        let (fragments, wanted) = self.fragments();
        let ty = if self.sum == "f32" { "f32" } else { "b32" };
        let counts: Vec<usize> = fragments.iter().map(|lanes| lanes[0].len()).collect();
        let results = wanted[0].len();
        let list = |name: &str, count: usize| {
            let all: Vec<String> = (0..count).map(|at| format!("%{name}{at}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let stride = 4 * (counts.iter().sum::<usize>() + 1 + results);
        let mut text = format!(
            "{target}\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n.reg .b64 %p, %o;\n.reg .b32 %lane, %e, %a<{}>, %b<{}>;\n\
             .reg .{ty} %c<{}>, %d<{results}>;\nld.param.u64 %p, [p];\nmov.u32 %lane, %tid.x;\nmul.wide.u32 %o, %lane, {stride};\nadd.u64 %p, %p, %o;\n",
            counts[0], counts[1], counts[2]
        );
        let mut offset = 0;
        for (name, count) in ["a", "b", "c"].into_iter().zip(&counts) {
            for at in 0..*count {
                let ty = if name == "c" { ty } else { "b32" };
                text += &format!("ld.global.{ty} %{name}{at}, [%p+{offset}];\n");
                offset += 4;
            }
        }
        text += &format!("ld.global.b32 %e, [%p+{offset}];\n");
        text += &format!(
            "{} {}, {}, {}, {}, %e, {};\n",
            self.text(),
            list("d", results),
            list("a", counts[0]),
            list("b", counts[1]),
            list("c", counts[2]),
            self.selector
        );
        for at in 0..results {
            text += &format!("st.global.{ty} [%p+{}], %d{at};\n", offset + 4 + 4 * at);
        }
        text += "ret;\n}\n";
        let mut bytes = Vec::new();
        for lane in 0..32 {
            let own = fragments.iter().flat_map(|lanes| lanes[lane].clone()).chain([metadata[lane]]);
            own.chain(std::iter::repeat_n(0, results)).for_each(|word| bytes.extend(word.to_le_bytes()));
        }
        let program = ExecProgram::new(PtxModule::parse(&text).unwrap());
        let mut memory = SimpleMemory::new();
        let at = memory.allocate_with(&bytes);
        let entry = program.entry("k").unwrap();
        let options = Options::default();
        let outcome =
            entry.launch(&LaunchShape::linear(1, 32), &at.to_le_bytes(), &[], &memory, &options).unwrap();
        if !outcome.findings.is_empty() {
            return Err(outcome.findings.iter().map(ToString::to_string).collect());
        }
        let bytes = memory.read(at, bytes.len() as u64).unwrap();
        let lane = |lane: &[u8]| {
            let words = lane.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
            words.skip(counts.iter().sum::<usize>() + 1).collect()
        };
        Ok(bytes.chunks(stride).map(lane).collect())
    }
}

/// A whole number as an `f16`.
fn half(value: i64) -> u32 {
    if value == 0 {
        return 0;
    }
    let top = value.unsigned_abs().ilog2();
    let rest = ((value.unsigned_abs() - (1 << top)) << 10 >> top) as u32;
    u32::from(value < 0) << 15 | (top + 15) << 10 | rest
}

const HOPPER: &str = ".version 8.5\n.target sm_90";

fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    for (ty, depth, sum, selectors) in [
        ("f16", 16, "f32", 4),
        ("f16", 16, "f16", 4),
        ("f16", 32, "f32", 2),
        ("f16", 32, "f16", 2),
        ("bf16", 16, "f32", 4),
        ("bf16", 32, "f32", 2),
        ("tf32", 8, "f32", 4),
        ("tf32", 16, "f32", 2),
        ("s8", 32, "s32", 2),
        ("u8", 64, "s32", 1),
        ("s4", 64, "s32", 2),
        ("u4", 128, "s32", 1),
    ] {
        for selector in 0..selectors {
            all.extend([false, true].map(|ordered| Form { ty, other: ty, depth, sum, ordered, selector }));
        }
    }
    for (ty, other) in [("e4m3", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e4m3"), ("e5m2", "e5m2")] {
        let form = Form { ty, other, depth: 64, sum: "f32", ordered: false, selector: 0 };
        all.extend([form, Form { ordered: true, ..form }]);
    }
    all
}

#[test]
fn every_sparse_product_is_that_of_the_whole_matrices() {
    let mut wrong = Vec::new();
    for form in forms() {
        match form.run(HOPPER, &form.metadata()) {
            Ok(found) if found == form.fragments().1 => {}
            Ok(_) => wrong.push(format!("{form:?}: wrong")),
            Err(found) => wrong.push(format!("{form:?}: {}", found[0])),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn metadata_that_names_no_two_elements_is_told() {
    let told = |form: Form, index: u32| {
        let mut metadata = form.metadata();
        metadata[form.selector] = metadata[form.selector] & !15 | index;
        form.run(HOPPER, &metadata).err().map_or_else(String::new, |found| found.join("\n"))
    };
    let plain = Form { ty: "f16", other: "f16", depth: 16, sum: "f32", ordered: false, selector: 2 };
    for index in [0b0000, 0b0101, 0b1010, 0b1111] {
        assert!(told(plain, index).contains(&format!("has the index {index:#06b}")), "{index:04b}");
    }
    assert_eq!(told(plain, 0b0001), "", "indices need not rise");
    let text = told(Form { ordered: true, ..plain }, 0b0001);
    assert!(text.contains("0b0001") && text.contains("thread (2,0,0)"), "{text}");
    let single = Form { ty: "tf32", other: "tf32", depth: 8, ..plain };
    assert!(told(single, 0b1000).contains("0b1000"));
    // Words of threads that give no metadata mean nothing.
    let mut metadata = plain.metadata();
    metadata[0] = 0;
    assert!(plain.run(HOPPER, &metadata).is_ok());
}

#[test]
fn selectors_versions_and_forms_that_do_not_exist_are_refused() {
    let found =
        |form: Form, target: &str| form.run(target, &[0x4444_4444; 32]).err().unwrap_or_default().join("\n");
    let form = Form { ty: "f16", other: "f16", depth: 32, sum: "f32", ordered: false, selector: 2 };
    assert!(found(form, HOPPER).contains("must be from 0 to 1"), "{}", found(form, HOPPER));
    let form = Form { selector: 0, ordered: true, ..form };
    let old = found(form, ".version 8.4\n.target sm_80");
    assert!(old.contains("requires PTX 8.5 and sm_80 or newer; the module is PTX 8.4 for sm_80"), "{old}");
    assert!(old.contains("at PTX line "), "{old}");
    let old = found(Form { ordered: false, ..form }, ".version 8.4\n.target sm_75");
    assert!(old.contains("requires PTX 7.1 and sm_80"), "{old}");
    let none = found(Form { sum: "s32", ..form }, HOPPER);
    assert!(none.contains("mma.sp"), "{none}");
    let small = Form { ty: "e4m3", other: "e5m2", depth: 64, ..form };
    let old = found(small, ".version 8.5\n.target sm_80");
    assert!(old.contains("requires PTX 8.5 and sm_89"), "{old}");
    let old = found(Form { ordered: false, ..small }, ".version 8.3\n.target sm_89");
    assert!(old.contains("requires PTX 8.4 and sm_89"), "{old}");
    let none = found(Form { depth: 32, ..small }, HOPPER);
    assert!(none.contains("mma.sp"), "{none}");
}
