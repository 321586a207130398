//! Every kernel of the table gives what its oracle says, in several orders and on several threads.

use kiln_kernels::{Case, CaseSource, Ending, cases};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{Checks, DeviceHeap, ExecOutcome, ExecProgram, LaunchShape, Options, SimpleMemory};

/// Runs a case; what it left in its buffers, and the outcome.
fn run(case: &Case, seed: u64, options: &Options<'_>) -> (kiln_kernels::CaseArguments, ExecOutcome) {
    let module = PtxModule::parse(case.source.ptx).unwrap();
    let program = ExecProgram::new(module);
    let mut memory = SimpleMemory::new();
    let globals: Vec<u64> = program.variables().iter().map(|v| memory.allocate(v.bytes)).collect();
    for (at, address) in globals.iter().enumerate() {
        assert!(memory.write(*address, &program.contents(at, &globals)));
    }
    let arguments = case.arguments(seed);
    let buffers: Vec<(u64, u64)> = arguments
        .buffers()
        .map(|buffer| {
            let bytes = buffer.data.to_bytes();
            (memory.allocate_with(&bytes), bytes.len() as u64)
        })
        .collect();
    let addresses: Vec<u64> = buffers.iter().map(|(address, _)| *address).collect();
    let entry = program.entry(case.entry).unwrap();
    assert!(entry.unsupported().is_empty(), "{:?}", entry.unsupported());
    let shape = LaunchShape {
        grid: case.shape.grid,
        block: case.shape.block,
        dynamic_shared_bytes: case.shape.shared_bytes,
        cooperative: case.shape.cooperative,
        cluster: None,
        non_portable_cluster: false,
    };
    let outcome = entry.launch(&shape, &arguments.pack(&addresses), &globals, &memory, options).unwrap();
    let contents: Vec<Vec<u8>> =
        buffers.iter().map(|(address, bytes)| memory.read(*address, *bytes).unwrap()).collect();
    (arguments.with_contents(&contents), outcome)
}

/// What is wrong with a case, if anything.
fn judge(case: &Case, seed: u64, options: &Options<'_>) -> Result<(), String> {
    let (actual, outcome) = run(case, seed, options);
    let findings: Vec<String> = outcome.findings.iter().map(ToString::to_string).collect();
    match (case.ending, outcome.fault) {
        (Ending::Done, None) if findings.is_empty() => {}
        (Ending::Fault(code), Some(fault)) if fault.code() == code => return Ok(()),
        (_, fault) => return Err(format!("ended with {fault:?}: {}", findings.join("\n"))),
    }
    let arguments = case.arguments(seed);
    case.expected(&arguments).compare(&actual)?;
    let mut printed: Vec<String> = outcome.printed_text().lines().map(str::to_owned).collect();
    let mut expected = case.printed(&arguments).unwrap_or_default();
    printed.sort_unstable();
    expected.sort_unstable();
    if printed != expected {
        return Err(format!("printed {printed:?}, not {expected:?}"));
    }
    Ok(())
}

fn judge_all(options: &Options<'_>, seed: u64) {
    let wrong: Vec<String> = cases()
        .iter()
        .filter_map(|case| judge(case, seed, options).err().map(|text| format!("{}: {text}", case.name)))
        .collect();
    assert!(wrong.is_empty(), "{} of {} kernels:\n{}", wrong.len(), cases().len(), wrong.join("\n"));
}

#[test]
fn every_kernel_matches_its_oracle_with_all_checks_on() {
    let heap = DeviceHeap::default();
    judge_all(&Options { heap: Some(&heap), checks: Checks::ALL, ..Options::default() }, 1);
    assert_eq!(heap.used_bytes(), 0, "kernels free what they allocate");
}

#[test]
fn no_order_of_blocks_and_warps_changes_a_result() {
    let heap = DeviceHeap::default();
    for seed in [1, 77] {
        judge_all(&Options { heap: Some(&heap), seed, ..Options::default() }, seed);
    }
}

#[test]
fn no_order_takes_a_slow_warp_for_a_stuck_one() {
    // One warp alone, and instructions that take several steps: some orders give it one step at a time.
    let case = cases().iter().find(|case| case.name == "generic_pointers").unwrap();
    for seed in 0..300 {
        judge(case, 1, &Options { seed, ..Options::default() })
            .unwrap_or_else(|text| panic!("seed {seed}: {text}"));
    }
}

#[test]
fn blocks_on_several_threads_give_the_same_results() {
    let heap = DeviceHeap::default();
    judge_all(&Options { heap: Some(&heap), threads: 3, ..Options::default() }, 2);
}

/// What is found when a kernel of the tensor cores is run from another text.
fn found_in(ptx: String, name: &str) -> String {
    let case = cases().iter().find(|case| case.name == name).unwrap();
    let source = CaseSource { ptx: ptx.leak(), ..*case.source };
    let mut changed = *case;
    changed.source = Box::leak(Box::new(source));
    let options = Options { checks: Checks::ALL, seed: 1, ..Options::default() };
    let (_, outcome) = run(&changed, 1, &options);
    outcome.findings.iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn products_and_attention_that_lack_a_barrier_or_a_wait_are_found() {
    for name in ["product_f16", "product_bf16", "product_tf32", "product_s8", "attention"] {
        let ptx = cases().iter().find(|case| case.name == name).unwrap().source.ptx;
        assert_eq!(found_in(ptx.to_owned(), name), "");
        let start = ptx.find(&format!(".entry {name}(")).unwrap();
        let end = ptx[start + 1..].find(".entry").map_or(ptx.len(), |next| start + 1 + next);
        let barriers: Vec<usize> =
            ptx[start..end].match_indices("bar.sync").map(|(at, _)| start + at).collect();
        assert_eq!(barriers.len(), 2, "{name}: behind the copies of a step, and behind its products");
        for at in barriers {
            let after = at + ptx[at..].find(';').unwrap() + 1;
            let found = found_in(format!("{}{}", &ptx[..at], &ptx[after..]), name);
            assert!(found.contains("race"), "{name} without the barrier at byte {at}: {found}");
        }
        let body = ptx[start..end].replace("cp.async.wait_group 1", "cp.async.wait_group 2");
        let found = found_in(format!("{}{body}{}", &ptx[..start], &ptx[end..]), name);
        assert!(found.contains("pending copy"), "{name}: {found}");
    }
}
