//! Random kernels, run by the executor: what effects promise not to happen does not.
//!
//! Where `effects_property` looks for pointers that get away through arithmetic, these kernels have what compilers emit around
//! accesses: branches and loops that depend on data, selected pointers, calls, atomics, vectors, generic addresses, pointers kept in
//! local memory and loaded from global memory. Every byte a region sees touched must have been admitted.

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use kiln_ptx::PtxModule;
use kiln_ptx::exec::{
    Cells, Declared, ExecProgram, GlobalMemory, LaunchShape, Miss, MissKind, Options, Span, Words,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Where the memory behind the three parameters lies.
const REGIONS: [u64; 3] = [0x1000_0000, 0x2000_0000, 0x3000_0000];
const REGION_BYTES: u64 = 4096;
/// Pointers the kernel has before its first statement.
const FIRST: usize = 3;

/// One statement. Pointers are picked among those that exist when it is reached.
#[derive(Clone, Debug)]
enum Statement {
    /// An access through a pointer; the text names it `P`.
    Access(&'static str, usize),
    /// A new pointer from one or two old ones, named `P` and `Q`; the new one is `D`.
    Derive(&'static str, usize, usize),
    /// Statements behind a condition that depends on the thread and on data.
    If(u32, Vec<Statement>),
    /// Statements that run so many times.
    Loop(u32, Vec<Statement>),
}

const ACCESSES: &[&str] = &[
    "ld.global.u32 %r1, [P];",
    "ld.u8 %r1, [P+3];",
    "ld.global.v2.u32 {%r1, %r2}, [P+8];",
    "ld.global.nc.u32 %r1, [P+4];",
    "st.global.u32 [P], %r0;",
    "st.u16 [P+2], %h0;",
    "st.global.v4.u32 [P+16], {%r0, %r1, %r0, %r1};",
    "atom.global.add.u32 %r1, [P], 1;",
    "atom.cas.b32 %r1, [P+4], 0, 1;",
    "red.global.max.u32 [P+12], %r0;",
    "@%p0 st.global.u32 [P], %r1;",
    "@!%p0 ld.global.u32 %r1, [P];",
    "{ .param .b64 a; st.param.b64 [a], P; call.uni reads, (a); }",
    "{ .param .b64 a; st.param.b64 [a], P; call.uni writes, (a); }",
    "{ .param .b64 a; st.param.b64 [a], P; call.uni ignores, (a); }",
    "prefetch.global.L2 [P];",
];

const DERIVATIONS: &[&str] = &[
    "add.s64 D, P, 64;",
    "mad.wide.u32 D, %r0, 8, P;",
    "cvta.to.global.u64 D, P;",
    "selp.b64 D, P, Q, %p0;",
    "mov.u64 D, P; @%p0 mov.u64 D, Q;",
    "st.local.u64 [frame], P; ld.local.u64 D, [frame];",
    "st.local.u64 [frame+8], P; @%p0 st.local.u64 [frame+8], Q; ld.local.u64 D, [frame+8];",
    "st.shared.u64 [tile], P; bar.warp.sync -1; ld.shared.u64 D, [tile];",
    "ld.global.u64 D, [P];",
    "st.global.u64 [P+32], Q; ld.global.u64 D, [P+32];",
    "{ .param .b64 a; .param .b64 b; .param .b64 r; st.param.b64 [a], P; st.param.b64 [b], Q; \
     call.uni (r), chooses, (a, b); ld.param.b64 D, [r]; }",
];

const FUNCTIONS: &str = "
.func reads(.param .b64 p) { .reg .b32 %r; .reg .b64 %d;
    ld.param.b64 %d, [p]; ld.u32 %r, [%d]; ret; }
.func writes(.param .b64 p) { .reg .b64 %d;
    ld.param.b64 %d, [p]; st.u32 [%d+20], 5; ret; }
.func ignores(.param .b64 p) { ret; }
.func (.param .b64 r) chooses(.param .b64 p, .param .b64 q) { .reg .b32 %t; .reg .pred %c; .reg .b64 %d<2>;
    ld.param.b64 %d0, [p]; mov.u32 %t, %tid.x; setp.gt.u32 %c, %t, 9; @%c ld.param.b64 %d0, [q];
    st.param.b64 [r], %d0; ret; }
";

fn statement() -> impl Strategy<Value = Statement> {
    let leaf = prop_oneof![
        3 => (select(ACCESSES), 0..64_usize).prop_map(|(text, p)| Statement::Access(text, p)),
        2 => (select(DERIVATIONS), 0..64_usize, 0..64_usize).prop_map(|(text, p, q)| Statement::Derive(text, p, q)),
    ];
    leaf.prop_recursive(2, 12, 4, |inner| {
        let body = prop::collection::vec(inner, 1..4);
        prop_oneof![
            (0..40_u32, body.clone()).prop_map(|(bound, body)| Statement::If(bound, body)),
            (1..4_u32, body).prop_map(|(times, body)| Statement::Loop(times, body)),
        ]
    })
}

/// Writes statements; counts pointers and labels on the way.
#[derive(Default)]
struct Printer {
    text: String,
    pointers: usize,
    labels: usize,
}

impl Printer {
    fn put(&mut self, statements: &[Statement]) {
        for statement in statements {
            let at = self.labels;
            self.labels += 1;
            match statement {
                Statement::Access(text, p) => {
                    writeln!(self.text, "{}", text.replace('P', &self.pointer(*p))).unwrap();
                }
                Statement::Derive(text, p, q) => {
                    let (p, q) = (self.pointer(*p), self.pointer(*q));
                    let d = format!("%x{}", self.pointers);
                    writeln!(self.text, "{}", text.replace('P', &p).replace('Q', &q).replace('D', &d))
                        .unwrap();
                    self.pointers += 1;
                }
                Statement::If(bound, body) => {
                    writeln!(self.text, "setp.gt.u32 %p1, %r0, {bound}; @%p1 bra L{at};").unwrap();
                    self.put(body);
                    writeln!(self.text, "L{at}:").unwrap();
                }
                Statement::Loop(times, body) => {
                    writeln!(self.text, "mov.u32 %c{at}, 0;\nL{at}:").unwrap();
                    self.put(body);
                    writeln!(
                        self.text,
                        "add.u32 %c{at}, %c{at}, 1; setp.lt.u32 %p1, %c{at}, {times}; @%p1 bra L{at};"
                    )
                    .unwrap();
                }
            }
        }
    }

    fn pointer(&self, number: usize) -> String {
        format!("%x{}", number % self.pointers)
    }
}

fn print(statements: &[Statement]) -> String {
    let mut printer = Printer { pointers: FIRST, ..Printer::default() };
    printer.put(statements);
    let Printer { text, pointers, labels } = printer;
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n{FUNCTIONS}\
         .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {{\n\
         .local .align 8 .b8 frame[16]; .shared .align 8 .b8 tile[8];\n\
         .reg .pred %p<2>; .reg .b16 %h<1>; .reg .b32 %r<4>, %c<{labels}>; .reg .b64 %x<{pointers}>;\n\
         ld.param.u64 %x0, [a]; ld.param.u64 %x1, [b]; ld.param.u64 %x2, [c]; ld.param.u32 %r3, [n];\n\
         mov.u32 %r0, %tid.x; mov.u32 %r1, 0; mov.u32 %r2, 0; cvt.u16.u32 %h0, %r0;\n\
         setp.lt.u32 %p0, %r0, %r3;\n{text}ret;\n}}\n"
    )
}

/// Memory behind a parameter, which remembers what was done to it.
struct Region {
    words: Words,
    read: AtomicBool,
    written: AtomicBool,
}

impl Cells for Region {
    fn load(&self, offset: u64, bytes: u32) -> u64 {
        self.read.store(true, Ordering::Relaxed);
        self.words.load(offset, bytes)
    }

    fn peek(&self, offset: u64, bytes: u32) -> u64 {
        self.words.load(offset, bytes)
    }

    fn store(&self, offset: u64, bytes: u32, value: u64) {
        self.written.store(true, Ordering::Relaxed);
        self.words.store(offset, bytes, value);
    }

    fn update(&self, offset: u64, bytes: u32, next: &mut dyn FnMut(u64) -> u64) -> u64 {
        self.read.store(true, Ordering::Relaxed);
        self.written.store(true, Ordering::Relaxed);
        self.words.update(offset, bytes, next)
    }
}

struct Regions([Region; 3]);

impl Regions {
    /// Each begins with a pointer to the next, so that addresses can be loaded.
    fn new() -> Self {
        Self([1, 2, 0].map(|next| {
            let words = Words::zeroed(REGION_BYTES);
            words.write(0, &REGIONS[next].to_le_bytes());
            Region { words, read: AtomicBool::new(false), written: AtomicBool::new(false) }
        }))
    }
}

impl GlobalMemory for Regions {
    fn span(&self, address: u64) -> Option<Span<'_>> {
        let inside = |start: &u64| (*start..start + REGION_BYTES).contains(&address);
        let at = REGIONS.iter().position(inside)?;
        let (start, end) = (REGIONS[at], REGIONS[at] + REGION_BYTES);
        Some(Span {
            start,
            end,
            origin: start,
            writable: true,
            declared: Declared::ReadWrite,
            cells: &self.0[at],
        })
    }

    fn miss(&self, _: u64, _: u64) -> Miss {
        Miss { kind: MissKind::OutOfBounds, near: String::new() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn effects_admit_what_the_executor_does(
        statements in prop::collection::vec(statement(), 1..8),
        bound in select(vec![0_u32, 5, 40]),
        seed in 0..4_u64,
    ) {
        let text = print(&statements);
        let module = PtxModule::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let effects = module.effects(module.find_function("k").unwrap()).unwrap();
        let program = ExecProgram::new(module);
        let entry = program.entry("k").unwrap();
        prop_assert!(entry.unsupported().is_empty(), "{:?}", entry.unsupported());
        let memory = Regions::new();
        let mut arguments: Vec<u8> = REGIONS.iter().flat_map(|start| start.to_le_bytes()).collect();
        arguments.extend(bound.to_le_bytes());
        let options = Options { seed, step_limit: 10_000, ..Options::default() };
        // A fault ends the kernel early; what it did until then still counts.
        entry.launch(&LaunchShape::linear(1, 33), &arguments, &[], &memory, &options).unwrap();
        for (at, region) in memory.0.iter().enumerate() {
            let effect = effects.pointer(at, 0).unwrap().effect;
            let (read, written) = (region.read.load(Ordering::Relaxed), region.written.load(Ordering::Relaxed));
            prop_assert!(!written || effect.writes.is_possible(), "parameter {at} is written\n{text}");
            prop_assert!(!read || effect.reads.is_possible(), "parameter {at} is read\n{text}");
        }
    }
}

/// The test above is worth something only if effects often say no: here they must.
#[test]
fn effects_say_no_where_nothing_happens() {
    let text = print(&[
        Statement::Access("ld.global.u32 %r1, [P];", 0),
        Statement::Access("st.global.u32 [P], %r0;", 1),
    ]);
    let module = PtxModule::parse(&text).unwrap();
    let effects = module.effects(module.find_function("k").unwrap()).unwrap();
    let words: Vec<&str> = (0..3).map(|at| effects.pointer(at, 0).unwrap().effect.access().word()).collect();
    assert_eq!(words, ["reads", "writes", "neither"]);
}
