//! Mistakes that backends of this kind have made. Each test has the mistake as its sentence, and shows that it is not made here.

use std::time::Duration;

use kiln::checking::FindingRule;
use kiln::program::{Bindings, DispatchConfig, Program, ProgramError};
use kiln_driver::Code;
use kiln_ir::{BindingPlan, DeviceLimits, LaunchPlan, LaunchRequest};
use kiln_sim::{FaultPlan, MachineConfig, PlannedFault};

use crate::rig::{Rig, refusal};

/// Runs a law on the simulated device and, where there is one, on a GPU.
fn everywhere(test: &str, law: impl Fn(&Rig)) {
    let rig = Rig::simulated();
    law(&rig);
    rig.finish();
    if let Some(rig) = Rig::cuda(test) {
        law(&rig);
        rig.finish();
    }
}

fn program(text: &str) -> Program {
    Program::parse(text).unwrap()
}

fn one_block() -> DispatchConfig {
    DispatchConfig { grid: Some(1.into()), ..DispatchConfig::default() }
}

/// An out-of-range store that lands in element 0.
#[test]
fn an_out_of_range_store_lands_in_element_0() {
    everywhere("an_out_of_range_store_lands_in_element_0", |rig| {
        let text = "
            kernel stray(inout x: u32[], inout beside: u32[like x], far: u64) block(8) {
                let i = u64(thread.x);
                x[i + far] = 1;
                x[18446744073709551615] = 2;
                atomic_add(x[i + far], 3);
            }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        // A neighbour in the same block of memory would be hit by a store that strays a little.
        let all = rig.gpu().upload(&[7_u32; 24]).unwrap();
        let (x, beside) = (all.view(0..8).unwrap(), all.view(8..16).unwrap());
        for far in [8_u64, 100, 1 << 32, 1 << 62, u64::MAX - 7] {
            let given = Bindings::new().resident("x", &x).resident("beside", &beside).scalar("far", far);
            pipeline.dispatch_with(given, &one_block()).unwrap();
            assert_eq!(all.download().unwrap(), [7; 24], "{far} elements too far");
        }
    });
}

/// Signedness lost through a unary operator.
#[test]
fn signedness_is_lost_through_a_unary_operator() {
    everywhere("signedness_is_lost_through_a_unary_operator", |rig| {
        let text = "
            kernel signs(in x: i32[], out less: u32[like x], out shifted: i32[like x], out wide: i64[like x], out real: f32[like x])
            block(8) over(x) {
                let i = global.x;
                let y = -x[i];
                less[i] = select(y < 3, 1u32, 0u32);
                shifted[i] = y >> 1;
                wide[i] = i64(y);
                real[i] = f32(y);
            }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let x = [5_i32, -5, 0, i32::MAX, i32::MIN];
        let mut done = pipeline.dispatch(Bindings::new().input("x", &x)).unwrap();
        let y = x.map(i32::wrapping_neg);
        assert_eq!(done.outputs.take::<u32>("less").unwrap(), y.map(|y| u32::from(y < 3)));
        assert_eq!(done.outputs.take::<i32>("shifted").unwrap(), y.map(|y| y >> 1));
        assert_eq!(done.outputs.take::<i64>("wide").unwrap(), y.map(i64::from));
        assert_eq!(done.outputs.take::<f32>("real").unwrap(), y.map(|y| y as f32));
    });
}

/// Trap as a silent exit.
#[test]
fn a_trap_is_a_silent_exit() {
    everywhere("a_trap_is_a_silent_exit", |rig| {
        let text = "kernel guard(inout x: u32[]) block(64) over(x) { if x[global.x] == 7 { trap(42); } x[global.x] = 1; }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let mut x: Vec<u32> = (0..300).rev().collect();
        let refused = refusal(pipeline.dispatch(Bindings::new().in_out("x", &mut x)));
        assert_eq!(
            refused,
            ProgramError::Trap { program: "guard".into(), code: 42, thread: 292 % 64, block: 292 / 64 }
        );
        assert_eq!(x, (0..300).rev().collect::<Vec<u32>>());
        // The device goes on, and so does the pipeline.
        let mut good = vec![5_u32; 300];
        pipeline.dispatch(Bindings::new().in_out("x", &mut good)).unwrap();
        assert_eq!(good, [1; 300]);
    });
}

/// Passes a value in shared memory from one warp to another by a flag, with orders of the caller's.
fn pass_on(release: &str, acquire: &str) -> Program {
    program(&format!(
        "
        kernel pass_on(inout flag: u32[1], out seen: u32[1]) block(64) {{
            shared data: u32[1];
            if thread.x == 0 {{
                data[0] = 41;
                atomic_exchange.{release}.device(flag[0], 1);
            }}
            if thread.x == 32 {{
                var tries: u64 = 0;
                while tries < 100000 {{
                    if atomic_add.{acquire}.device(flag[0], 0) == 1 {{ break; }}
                    tries = tries + 1;
                }}
                seen[0] = data[0] + 1;
            }}
        }}"
    ))
}

/// Atomic orders ignored.
#[test]
fn atomic_orders_are_ignored() {
    let run = |rig: &Rig, release: &str, acquire: &str| {
        let pipeline = rig.backend.compile(&pass_on(release, acquire)).unwrap();
        let given = Bindings::new().input("flag", &[0_u32]);
        pipeline.dispatch_with(given, &one_block())
    };
    everywhere("atomic_orders_are_ignored", |rig| {
        for (release, acquire) in [("release", "acquire"), ("acq_rel", "acq_rel"), ("seq_cst", "seq_cst")] {
            let mut outputs = run(rig, release, acquire).unwrap().outputs;
            assert_eq!(outputs.take::<u32>("seen").unwrap(), [42], "{release} and {acquire}");
        }
    });
    // That they count shows where they are missing: the thread that reads the data then races with the one that wrote it.
    for (release, acquire) in [("relaxed", "relaxed"), ("release", "relaxed"), ("relaxed", "acquire")] {
        let rig = Rig::simulated();
        let error = run(&rig, release, acquire).map(|_| ()).unwrap_err();
        let finding = error.finding().unwrap_or_else(|| panic!("{release} and {acquire}: {error}"));
        assert_eq!(finding.rule, FindingRule::Race, "{finding}");
        assert!(!rig.findings().is_empty(), "{release} and {acquire} order nothing");
    }
}

/// f64 refused.
#[test]
fn f64_is_refused() {
    everywhere("f64_is_refused", |rig| {
        let text = "
            kernel doubles(in x: f64[], out y: f64[like x], a: f64) block(32) over(x) {
                y[global.x] = sqrt(fma(a, x[global.x], 1.0)) / 3.0;
            }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let (x, mut y) = ([0.1_f64, 2.0, 1e300, 5e-324], Vec::<f64>::new());
        pipeline.dispatch(Bindings::new().scalar("a", 0.3_f64).input("x", &x).output("y", &mut y)).unwrap();
        assert_eq!(y, x.map(|x| 0.3_f64.mul_add(x, 1.0).sqrt() / 3.0));
    });
}

/// Lengths above 2^32 becoming 0.
#[test]
fn lengths_above_32_bits_become_0() {
    const LEN: u64 = (1 << 32) + 5;
    let text = "
        kernel ends(inout x: u8[], out length: u64[1]) block(1) {
            length[0] = len(x);
            x[len(x) - 1] = x[len(x) - 1] + 9;
            x[len(x)] = 1;
        }";
    everywhere("lengths_above_32_bits_become_0", |rig| {
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let x = rig.when_free(|| rig.gpu().allocate::<u8>(LEN as usize));
        let (low, last) = (x.view(..8).unwrap(), x.view(LEN as usize - 1..).unwrap());
        low.fill(3).unwrap();
        last.fill(3).unwrap();
        let given = Bindings::new().resident("x", &x);
        let mut done = pipeline.dispatch_with(given, &one_block()).unwrap();
        assert_eq!(done.outputs.take::<u64>("length").unwrap(), [LEN]);
        assert_eq!((low.download().unwrap(), last.download().unwrap()), (vec![3; 8], vec![12]));
    });
    // Nor does the grid that covers them.
    let text = "kernel all(inout x: u8[]) block(256) over(x) { x[global.x] = 1; }";
    let plan = BindingPlan::new(&program(text), &[("x", LEN)]).unwrap();
    let launch =
        LaunchPlan::new(&program(text), &plan, &LaunchRequest::default(), &DeviceLimits::default()).unwrap();
    assert_eq!(launch.grid, [(LEN.div_ceil(256)) as u32, 1, 1]);
}

/// A fault swallowed by a sync call.
#[test]
fn a_fault_is_swallowed_by_a_sync_call() {
    let text = "kernel touch(inout x: u32[]) block(32) over(x) { x[global.x] = 1; }";
    for code in [Code::ILLEGAL_ADDRESS, Code::ECC_UNCORRECTABLE] {
        let rig = Rig::of(
            MachineConfig::seeded(3)
                .faults(FaultPlan::none().on(0, PlannedFault::Sticky { launch: 2, code })),
        );
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let mut x = vec![0_u32; 8];
        pipeline.dispatch(Bindings::new().in_out("x", &mut x)).unwrap();
        x.fill(0);
        let error = pipeline.dispatch(Bindings::new().in_out("x", &mut x)).unwrap_err();
        assert_eq!((error.code(), error.is_sticky()), (Some(code), true));
        assert_eq!(x, [0; 8]);
        // Asked again, every caller hears of it again.
        for error in [
            rig.gpu().synchronize().unwrap_err(),
            pipeline.dispatch(Bindings::new().in_out("x", &mut x)).unwrap_err(),
            rig.backend.sequence().run().map(drop).and(rig.gpu().synchronize()).unwrap_err(),
        ] {
            assert_eq!(error.code(), Some(code), "{error}");
        }
    }
}

/// Identical inputs answered from a memo and reported as 0 ns.
#[test]
fn identical_inputs_are_answered_from_a_memo_and_reported_as_0_ns() {
    everywhere("identical_inputs_are_answered_from_a_memo_and_reported_as_0_ns", |rig| {
        // What it gives depends on how often it ran, so an answer from a memo is a wrong one.
        let text = "
            kernel tally(in x: u32[], persistent runs: u32[1], out y: u32[1]) block(32) over(x) {
                if global.x == 0 { y[0] = x[0] + atomic_add(runs[0], 1); }
            }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let (x, runs) = ([10_u32, 20, 30], rig.gpu().zeros::<u32>(1).unwrap());
        let config = DispatchConfig { profile: true, ..DispatchConfig::default() };
        for run in 0..5 {
            let before = rig.counts();
            let given = Bindings::new().input("x", &x).resident("runs", &runs);
            let mut done = pipeline.dispatch_with(given, &config).unwrap();
            assert_eq!(rig.launches_since(&before), 1);
            assert_eq!(done.outputs.take::<u32>("y").unwrap(), [10 + run]);
            assert!(done.timing.unwrap().device > Duration::ZERO);
        }
    });
}

/// Tests that search source text for words: a program all of whose names are such words does what the same program does with plain ones.
#[test]
fn a_program_is_judged_by_the_words_in_its_text() {
    everywhere("a_program_is_judged_by_the_words_in_its_text", |rig| {
        let text = |kernel: &str, x: &str, y: &str, a: &str| {
            format!(
                "kernel {kernel}(in {x}: u32[], out {y}: u32[like {x}], {a}: u32) block(32) over({x}) {{ {y}[global.x] = {x}[global.x] * {a} + 1; }}"
            )
        };
        let run = |[kernel, x, y, a]: [&str; 4]| {
            let pipeline = rig.backend.compile(&program(&text(kernel, x, y, a))).unwrap();
            let given = Bindings::new().input(x, &[1_u32, 2, 3]).scalar(a, 5_u32);
            pipeline.dispatch(given).unwrap().outputs.take::<u32>(y).unwrap()
        };
        let plain = run(["scale", "x", "y", "a"]);
        assert_eq!(plain, [6, 11, 16]);
        for words in [
            ["entry", "bar_sync", "atom_add", "ret"],
            ["membar", "exit", "trapped", "status"],
            ["visible", "param", "reg", "tid"],
            ["memo", "cache", "unsafe_", "sync"],
        ] {
            assert_eq!(run(words), plain, "{words:?}");
        }
    });
}

/// Speed-ups that divide CPU wall time by GPU event time: the two are kept apart, and what the device took is within what the host saw.
#[test]
fn wall_time_is_divided_by_event_time() {
    everywhere("wall_time_is_divided_by_event_time", |rig| {
        let text = "
            kernel busy(inout x: u32[]) block(64) over(x) {
                for turn in 0u32..2000u32 { x[global.x] = x[global.x] * 3 + turn; }
            }";
        let pipeline = rig.backend.compile(&program(text)).unwrap();
        let config = DispatchConfig { profile: true, ..DispatchConfig::default() };
        let mut x = vec![1_u32; 64];
        let timing =
            pipeline.dispatch_with(Bindings::new().in_out("x", &mut x), &config).unwrap().timing.unwrap();
        assert!(timing.device > Duration::ZERO && timing.device <= timing.wall, "{timing:?}");
        assert!(timing.enqueue + timing.wait <= timing.wall, "{timing:?}");
    });
}

/// Threads that write one element without an order.
const CLASH: &str = "kernel clash(in x: u32[], inout last: u32[1], inout changed: u32[1]) block(64) over(x) { last[0] = x[global.x]; }";

/// A race in a program fails every way to run it, and what it was to write is not handed out.
#[test]
fn a_race_fails_dispatches_sequences_loops_and_typed_handles() {
    let rig = Rig::simulated();
    let clash = rig.backend.compile(&program(CLASH)).unwrap();
    let x: Vec<u32> = (0..64).collect();
    let given = || Bindings::new().input("x", &x).input("changed", &[0_u32]);
    let told = |way: &str, error: kiln::Error| {
        let finding = error.finding().unwrap_or_else(|| panic!("{way}: {error}"));
        assert_eq!((finding.rule, finding.kernel.as_deref()), (FindingRule::Race, Some("clash")), "{way}");
        let line = finding.line.as_ref().map(|line| line.file.as_str());
        assert_eq!(line, Some("clash.kir"), "{way}: {finding}");
    };
    told("dispatch", clash.dispatch(given().input("last", &[7_u32])).map(|_| ()).unwrap_err());

    let mut last = vec![7_u32];
    told("in place", clash.dispatch(given().in_out("last", &mut last)).map(|_| ()).unwrap_err());
    assert_eq!(last, [7], "a result that is wrong is not handed out");

    let pending = clash.dispatch_async(given().input("last", &[7_u32])).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    told("asynchronous", runtime.block_on(pending).map(|_| ()).unwrap_err());

    let (resident, mut seen) = (rig.gpu().upload(&[7_u32]).unwrap(), Vec::new());
    let mut sequence = rig.backend.sequence();
    sequence.step(&clash, given().resident("last", &resident)).unwrap();
    sequence.read(&resident, &mut seen).unwrap();
    told("sequence", sequence.run().map(|_| ()).unwrap_err());
    assert_eq!(seen, [0_u32; 0]);

    let converge = Some(kiln::program::Converge { flag: "changed".into(), limit: 10 });
    let config = DispatchConfig { converge, ..DispatchConfig::default() };
    let looped = clash.dispatch_with(given().input("last", &[7_u32]), &config);
    told("loop", looped.map(|_| ()).unwrap_err());
    // The device goes on.
    assert_eq!(rig.gpu().upload(&[1_u32]).unwrap().download().unwrap(), [1]);
}
