//! How fast the executor runs on one core: six kernels over plain memory, in million thread-instructions a second of the time of this thread.
//!
//! `cargo bench -p kiln-ptx --bench executor [-- KERNEL [default|every|none|counted|portable]]`. `counted` is `none` with statistics of every instruction,
//! `portable` is `none` without vector instructions and ranges. Each figure is the best of several launches.
//!
//! `cargo bench -p kiln-ptx --bench executor -- cores [N]`: how much faster launches of many blocks are on N host threads (2) than on one, by the clock. It
//! needs a machine without other work.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and stops at the first surprise"
)]

use kiln_kernels::cases;
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Launches for one figure at least, and seconds.
const LAUNCHES: usize = 5;
const SECONDS: f64 = 0.6;

const LOOPS: &str = r#"
.version 8.0
.target sm_80
.address_size 64
.visible .entry fma_loop(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p<2>;
    .reg .f32 %f<8>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    cvt.rn.f32.u32 %f1, %r2;
    mov.f32 %f2, 0f3f7fff00;
    mov.f32 %f3, 0f3c000000;
    mov.f32 %f4, %f1;
again:
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f4, %f4, %f2, %f1;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f4, %f4, %f2, %f1;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f4, %f4, %f2, %f1;
    fma.rn.f32 %f1, %f1, %f2, %f3;
    fma.rn.f32 %f4, %f4, %f2, %f1;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f4;
    ret;
}
.visible .entry integer_loop(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p<2>;
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [rounds];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, %r2;
again:
    add.u32 %r3, %r3, 1640531527;
    xor.b32 %r4, %r3, %r1;
    shl.b32 %r5, %r4, 7;
    add.u32 %r3, %r3, %r5;
    and.b32 %r4, %r3, 65535;
    sub.u32 %r3, %r3, %r4;
    shr.u32 %r5, %r3, 3;
    xor.b32 %r3, %r3, %r5;
    sub.u32 %r1, %r1, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra again;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
"#;

/// One kernel with its memory.
struct Subject {
    name: &'static str,
    ptx: &'static str,
    entry: &'static str,
    shape: LaunchShape,
    /// Elements of each buffer.
    buffers: Vec<usize>,
    /// A float in front of the addresses.
    scale: Option<f32>,
    last: u32,
}

fn subjects() -> Vec<Subject> {
    let ptx = |name: &str| cases().iter().find(|case| case.name == name).expect("a case").source.ptx;
    let square = |blocks: u32| LaunchShape {
        grid: [blocks, blocks, 1],
        block: [16, 16, 1],
        dynamic_shared_bytes: 0,
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
    };
    let (n, side) = (1usize << 20, 192usize);
    let matrices = vec![side * side; 3];
    vec![
        Subject {
            name: "saxpy",
            ptx: ptx("saxpy"),
            entry: "saxpy",
            shape: LaunchShape::linear((n / 256) as u32, 256),
            buffers: vec![n, n],
            scale: Some(2.0),
            last: n as u32,
        },
        Subject {
            name: "block_sum",
            ptx: ptx("block_sum"),
            entry: "block_sum",
            shape: LaunchShape::linear((n / 512) as u32, 256),
            buffers: vec![n, n],
            scale: None,
            last: n as u32,
        },
        Subject {
            name: "matmul_naive",
            ptx: ptx("matmul_naive"),
            entry: "matmul_naive",
            shape: square(side as u32 / 16),
            buffers: matrices.clone(),
            scale: None,
            last: side as u32,
        },
        Subject {
            name: "matmul_tiled",
            ptx: ptx("matmul_tiled"),
            entry: "matmul_tiled",
            shape: square(side as u32 / 16),
            buffers: matrices,
            scale: None,
            last: side as u32,
        },
        Subject {
            name: "fma_loop",
            ptx: LOOPS,
            entry: "fma_loop",
            shape: LaunchShape::linear(1, 256),
            buffers: vec![256],
            scale: None,
            last: 20_000,
        },
        Subject {
            name: "integer_loop",
            ptx: LOOPS,
            entry: "integer_loop",
            shape: LaunchShape::linear(1, 256),
            buffers: vec![256],
            scale: None,
            last: 20_000,
        },
    ]
}

impl Subject {
    /// Million thread-instructions a second, of the time of this thread or, with several, by the clock.
    fn rate(&self, mode: &str, threads: usize, seconds_now: &dyn Fn() -> f64) -> f64 {
        let program = ExecProgram::new(PtxModule::parse(self.ptx).expect("PTX"));
        let entry = program.entry(self.entry).expect("an entry");
        let mut memory = SimpleMemory::new();
        let mut arguments = Vec::new();
        if let Some(scale) = self.scale {
            arguments.extend(scale.to_le_bytes());
            arguments.resize(8, 0);
        }
        for elements in &self.buffers {
            let numbers = (0..*elements).map(|at| (at % 1013) as f32 / 1013.0);
            let bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
            arguments.extend(memory.allocate_with(&bytes).to_le_bytes());
        }
        arguments.extend(self.last.to_le_bytes());
        let statistics = entry.statistics();
        let checks = match mode {
            "default" => Checks::default(),
            "every" => Checks::ALL,
            _ => Checks::NONE,
        };
        let portable = mode == "portable";
        let statistics = (mode == "counted").then_some(&statistics);
        let options = Options { checks, statistics, portable, threads, ..Options::default() };
        let (mut best, mut spent, mut launches) = (0f64, 0f64, 0);
        while launches < LAUNCHES || spent < SECONDS {
            let start = seconds_now();
            let outcome = entry.launch(&self.shape, &arguments, &[], &memory, &options).expect("a launch");
            assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
            let seconds = seconds_now() - start;
            best = best.max(outcome.counters.thread_instructions as f64 / seconds / 1e6);
            spent += seconds;
            launches += 1;
        }
        best
    }
}

/// Seconds this thread has spent on a core so far, as Linux counts them.
fn thread_seconds() -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    counted.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).expect("a time") / 1e9
}

/// Prints how much faster launches are on several host threads.
fn print_cores(threads: usize) {
    let clock = std::time::Instant::now();
    let now = || clock.elapsed().as_secs_f64();
    println!("| kernel | checks | 1 thread | {threads} threads | ratio |\n|---|---|---|---|---|");
    for subject in subjects().iter().filter(|subject| subject.shape.grid[0] > 1) {
        for mode in ["every", "none"] {
            // In turn, so that what else the machine does meets both.
            let mut best = [0f64; 2];
            for _ in 0..3 {
                for (best, threads) in best.iter_mut().zip([1, threads]) {
                    *best = best.max(subject.rate(mode, threads, &now));
                }
            }
            let [one, many] = best;
            println!("| {} | {mode} | {one:.0} | {many:.0} | {:.2} |", subject.name, many / one);
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|text| !text.starts_with("--")).collect();
    if arguments.first().is_some_and(|first| first == "cores") {
        let threads = arguments.get(1).map_or(Ok(2), |text| text.parse());
        return print_cores(threads.expect("a number of threads"));
    }
    let modes = ["default", "every", "none", "counted", "portable"];
    let (kernel, mode) = (arguments.first(), arguments.get(1));
    print!("| kernel |");
    let is_meant = |name: &str| mode.map_or(name != "portable", |mode| mode == name);
    let modes = modes.iter().filter(|name| is_meant(name)).collect::<Vec<_>>();
    modes.iter().for_each(|mode| print!(" {mode} |"));
    println!("\n|---|{}", "---|".repeat(modes.len()));
    for subject in subjects().iter().filter(|subject| kernel.is_none_or(|name| name == subject.name)) {
        print!("| {} |", subject.name);
        modes.iter().for_each(|mode| print!(" {:.0} |", subject.rate(mode, 1, &thread_seconds)));
        println!();
    }
}
