//! Random kernels, run by a small machine in this file: what they really touch, effects must admit.
//!
//! The machine gives the three pointer parameters regions of memory far apart, fills these with pointers to each other
//! and small numbers, and computes with real addresses. So a pointer that gets away through any chain of operations
//! shows up as an access to its region, whatever the analysis believes about it. Every operation has a register of
//! its own and only the last one writes through a computed address: a kernel with many merged registers or stores
//! would make the analysis give up at once, and then it cannot be wrong.

use std::collections::HashMap;
use std::fmt::Write;

use kiln_ptx::PtxModule;
use proptest::prelude::*;

/// Where the regions of the three pointers start: no difference is a small multiple of another.
const REGIONS: [u64; 3] = [0x7f12_3400_0000, 0x7f12_5678_0000, 0x7e99_0040_0000];
const REGION_BYTES: u64 = 1 << 16;

/// Registers that are there before the first operation: the pointers, their global addresses, a parameter and a number.
const FIRST: usize = 8;

/// One operation: what it does and which earlier registers it takes, counted back from the newest or from the start.
#[derive(Clone, Debug)]
struct Op {
    kind: Kind,
    a: Pick,
    b: Pick,
}

#[derive(Clone, Copy, Debug)]
enum Pick {
    Newest(usize),
    Any(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Binary(&'static str),
    Unary(&'static str),
    Constant(&'static str, i64),
    Select,
    /// The low half of one and the high half of the other.
    Pack,
    /// The same with shifts and an or.
    Join,
    /// The low half.
    Truncate,
    /// `a` changed in a reversible way with `b` as the key, kept somewhere, and changed back: the result is `a`.
    Detour(Disguise, Transit),
    /// Eight bytes from the address `a`.
    Load,
    /// Eight bytes from the start of a region, where there are pointers and numbers.
    LoadData(usize, u64),
}

/// A reversible computation on a value and a key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disguise {
    Add,
    Subtract,
    SubtractFrom,
    NegateAndAdd,
    Xor,
    Not,
    Reverse,
    Shift,
}

/// Where a disguised value waits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Transit {
    Register,
    Local,
    Shared,
    /// In the memory behind the first pointer.
    Global,
    /// In local memory, taken out again in two halves.
    Halves,
}

fn any_kind() -> impl Strategy<Value = Kind> {
    use prop::sample::select;
    let disguise = select(vec![
        Disguise::Add,
        Disguise::Subtract,
        Disguise::SubtractFrom,
        Disguise::NegateAndAdd,
        Disguise::Xor,
        Disguise::Not,
        Disguise::Reverse,
        Disguise::Shift,
    ]);
    let transit =
        select(vec![Transit::Register, Transit::Local, Transit::Shared, Transit::Global, Transit::Halves]);
    let constants = vec![
        ("add.s64", 8),
        ("add.s64", -16),
        ("sub.s64", 24),
        ("and.b64", -8),
        ("and.b64", 0xffff_ffff),
        ("and.b64", 15),
        ("or.b64", -64),
        ("or.b64", 8),
        ("xor.b64", 32),
        ("shl.b64", 3),
        ("shl.b64", 12),
        ("shr.u64", 3),
        ("shr.u64", 12),
    ];
    prop_oneof![
        5 => select(vec!["add.s64", "sub.s64", "xor.b64", "or.b64", "and.b64", "min.u64", "max.u64"]).prop_map(Kind::Binary),
        2 => select(vec!["mov.u64", "neg.s64", "not.b64", "brev.b64"]).prop_map(Kind::Unary),
        2 => select(constants).prop_map(|(op, n)| Kind::Constant(op, n)),
        1 => Just(Kind::Select),
        1 => Just(Kind::Pack),
        1 => Just(Kind::Join),
        1 => Just(Kind::Truncate),
        6 => (disguise, transit).prop_map(|(d, t)| Kind::Detour(d, t)),
        1 => Just(Kind::Load),
        2 => (0..3usize, 0..3u64).prop_map(|(region, word)| Kind::LoadData(region, word * 8)),
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    let pick = || prop_oneof![(0..3usize).prop_map(Pick::Newest), (0..64usize).prop_map(Pick::Any)];
    (any_kind(), pick(), pick()).prop_map(|(kind, a, b)| Op { kind, a, b })
}

impl Pick {
    /// The register meant when `count` exist.
    fn among(self, count: usize) -> usize {
        match self {
            Self::Newest(back) => count - 1 - back,
            Self::Any(number) => number % count,
        }
    }
}

/// The kernel as PTX: the result of operation `i` is register `%x{FIRST + i}`, the last one is written through.
fn print(ops: &[Op]) -> String {
    let (cells, registers) = (8 * ops.len(), FIRST + ops.len());
    let mut text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.shared .align 8 .b8 tile[{cells}];\n\
         .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 m, .param .u32 n) {{\n\
         .local .align 8 .b8 frame[{cells}]; .reg .pred %p; .reg .b32 %n, %h<{registers}>, %i<{registers}>;\n\
         .reg .b64 %x<{registers}>, %t<{registers}>, %u<{registers}>, %v<{registers}>, %home;\n\
         ld.param.u32 %n, [n]; setp.ne.u32 %p, %n, 0;\n\
         ld.param.u64 %x0, [a]; ld.param.u64 %x1, [b]; ld.param.u64 %x2, [c]; ld.param.u64 %x6, [m];\n\
         cvta.to.global.u64 %x3, %x0; cvta.to.global.u64 %x4, %x1; cvta.to.global.u64 %x5, %x2; mov.u64 %x7, 16;\n"
    );
    for (i, op) in ops.iter().enumerate() {
        let d = FIRST + i;
        let (a, b) = (op.a.among(d), op.b.among(d));
        let line = match op.kind {
            Kind::Binary(op) => format!("{op} %x{d}, %x{a}, %x{b};"),
            Kind::Unary(op) => format!("{op} %x{d}, %x{a};"),
            Kind::Constant(op, n) => format!("{op} %x{d}, %x{a}, {n};"),
            Kind::Select => format!("selp.b64 %x{d}, %x{a}, %x{b}, %p;"),
            Kind::Pack => {
                format!(
                    "mov.b64 {{%h{d}, _}}, %x{a}; mov.b64 {{_, %i{d}}}, %x{b}; mov.b64 %x{d}, {{%h{d}, %i{d}}};"
                )
            }
            Kind::Join => format!(
                "cvt.u32.u64 %h{d}, %x{a}; shr.u64 %t{d}, %x{b}, 32; cvt.u64.u32 %u{d}, %h{d};\n\
                 shl.b64 %v{d}, %t{d}, 32; or.b64 %x{d}, %u{d}, %v{d};"
            ),
            Kind::Truncate => format!("cvt.u32.u64 %h{d}, %x{a}; cvt.u64.u32 %x{d}, %h{d};"),
            Kind::Detour(disguise, transit) => {
                format!("{}\n{}\n{}", hide(disguise, d, a, b), carry(transit, d, i), reveal(disguise, d, b))
            }
            Kind::Load => format!("ld.global.u64 %x{d}, [%x{a}];"),
            Kind::LoadData(region, offset) => format!("ld.global.u64 %x{d}, [%x{}+{offset}];", 3 + region),
        };
        writeln!(text, "{line}").unwrap();
    }
    text + &format!("st.u8 [%x{}], 1;\nret;\n}}\n", registers - 1)
}

/// The disguised value, in `%t`.
fn hide(disguise: Disguise, d: usize, a: usize, key: usize) -> String {
    match disguise {
        Disguise::Add => format!("add.s64 %t{d}, %x{a}, %x{key};"),
        Disguise::Subtract => format!("sub.s64 %t{d}, %x{a}, %x{key};"),
        Disguise::SubtractFrom => format!("sub.s64 %t{d}, %x{key}, %x{a};"),
        Disguise::NegateAndAdd => format!("neg.s64 %v{d}, %x{a}; add.s64 %t{d}, %x{key}, %v{d};"),
        Disguise::Xor => format!("xor.b64 %t{d}, %x{a}, %x{key};"),
        Disguise::Not => format!("not.b64 %t{d}, %x{a};"),
        Disguise::Reverse => format!("brev.b64 %t{d}, %x{a};"),
        Disguise::Shift => format!("shl.b64 %t{d}, %x{a}, 4;"),
    }
}

/// From `%t` to `%u` by some way.
fn carry(transit: Transit, d: usize, cell: usize) -> String {
    let at = cell * 8;
    match transit {
        Transit::Register => format!("mov.u64 %u{d}, %t{d};"),
        Transit::Local => format!("st.local.u64 [frame+{at}], %t{d}; ld.local.u64 %u{d}, [frame+{at}];"),
        Transit::Shared => format!("st.shared.u64 [tile+{at}], %t{d}; ld.shared.u64 %u{d}, [tile+{at}];"),
        Transit::Global => format!("st.global.u64 [%x3+4096], %t{d}; ld.global.u64 %u{d}, [%x3+4096];"),
        Transit::Halves => format!(
            "st.local.u64 [frame+{at}], %t{d}; ld.local.v2.u32 {{%h{d}, %i{d}}}, [frame+{at}];\n\
             mov.b64 %u{d}, {{%h{d}, %i{d}}};"
        ),
    }
}

/// The value again, from `%u`.
fn reveal(disguise: Disguise, d: usize, key: usize) -> String {
    match disguise {
        Disguise::Add => format!("sub.s64 %x{d}, %u{d}, %x{key};"),
        Disguise::Subtract => format!("add.s64 %x{d}, %x{key}, %u{d};"),
        Disguise::SubtractFrom | Disguise::NegateAndAdd => format!("sub.s64 %x{d}, %x{key}, %u{d};"),
        Disguise::Xor => format!("xor.b64 %x{d}, %u{d}, %x{key};"),
        Disguise::Not => format!("not.b64 %x{d}, %u{d};"),
        Disguise::Reverse => format!("brev.b64 %x{d}, %u{d};"),
        Disguise::Shift => format!("shr.u64 %x{d}, %u{d}, 4;"),
    }
}

/// What a kernel did to each region.
#[derive(Default)]
struct Deeds {
    read: [bool; 3],
    written: [bool; 3],
}

/// Runs a kernel up to its end, or to the first access outside the regions, which would be a fault.
fn run(ops: &[Op], m: u64, predicate: bool) -> Deeds {
    let [a, b, c] = REGIONS;
    let mut x = vec![a, b, c, a, b, c, m, 16];
    let mut memory = HashMap::new();
    for (i, start) in REGIONS.iter().enumerate() {
        memory.insert(*start, REGIONS[(i + 1) % 3] + 64);
        memory.insert(start + 8, start + 128);
        memory.insert(start + 16, 24);
    }
    let mut deeds = Deeds::default();
    for op in ops {
        let (a, b) = (x[op.a.among(x.len())], x[op.b.among(x.len())]);
        let result = match op.kind {
            Kind::Binary(op) => binary(op, a, b),
            Kind::Constant(op, n) => binary(op, a, n as u64),
            Kind::Unary("neg.s64") => a.wrapping_neg(),
            Kind::Unary("not.b64") => !a,
            Kind::Unary("brev.b64") => a.reverse_bits(),
            Kind::Unary(_) => a,
            Kind::Select => [b, a][usize::from(predicate)],
            Kind::Truncate => a & 0xffff_ffff,
            Kind::Pack | Kind::Join => a & 0xffff_ffff | b >> 32 << 32,
            Kind::Detour(disguise, transit) => {
                deeds.read[0] |= transit == Transit::Global;
                deeds.written[0] |= transit == Transit::Global;
                // Four bits are lost at the top on the way through the shift.
                if disguise == Disguise::Shift { a << 4 >> 4 } else { a }
            }
            Kind::Load | Kind::LoadData(..) => {
                let address = match op.kind {
                    Kind::LoadData(region, offset) => REGIONS[region] + offset,
                    _ => a,
                };
                let Some(region) = region(address).filter(|_| address % 8 == 0) else { return deeds };
                deeds.read[region] = true;
                memory.get(&address).copied().unwrap_or(0)
            }
        };
        x.push(result);
    }
    if let Some(region) = x.last().and_then(|address| region(*address)) {
        deeds.written[region] = true;
    }
    deeds
}

fn region(address: u64) -> Option<usize> {
    REGIONS.iter().position(|start| (*start..start + REGION_BYTES).contains(&address))
}

fn binary(op: &str, a: u64, b: u64) -> u64 {
    match op {
        "add.s64" => a.wrapping_add(b),
        "sub.s64" => a.wrapping_sub(b),
        "xor.b64" => a ^ b,
        "or.b64" => a | b,
        "and.b64" => a & b,
        "min.u64" => a.min(b),
        "max.u64" => a.max(b),
        "shl.b64" => a << b,
        "shr.u64" => a >> b,
        other => panic!("no operation {other}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn effects_admit_what_a_kernel_does(
        ops in prop::collection::vec(any_op(), 1..12),
        m in prop::sample::select(vec![0u64, 8, 40]),
        predicate: bool,
    ) {
        let text = print(&ops);
        let module = PtxModule::parse(&text).unwrap();
        let effects = module.effects(module.find_function("k").unwrap()).unwrap();
        let deeds = run(&ops, m, predicate);
        for i in 0..3 {
            let effect = effects.pointer(i, 0).unwrap().effect;
            prop_assert!(!deeds.written[i] || effect.writes.is_possible(), "parameter {i} is written\n{text}");
            prop_assert!(!deeds.read[i] || effect.reads.is_possible(), "parameter {i} is read\n{text}");
        }
    }
}
