//! Single instructions give, bit for bit, what an H200 gave; those that do not are listed, and each of them differs.

use kiln_kernels::{Probe, deviations, probe_module, probes, recorded};
use kiln_ptx::PtxModule;
use kiln_ptx::exec::{ExecProgram, LaunchShape, Options, SimpleMemory};

/// The results of one probe here.
fn run(program: &ExecProgram, at: usize, probe: &Probe) -> Result<Vec<u64>, String> {
    let mut memory = SimpleMemory::new();
    let inputs: Vec<u8> = probe.inputs().iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let (from, to) = (memory.allocate_with(&inputs), memory.allocate(8 * Probe::COUNT as u64));
    let entry = program.entry(&format!("probe_{at}")).unwrap();
    let arguments = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let shape = LaunchShape::linear(1, Probe::COUNT as u32);
    let outcome = entry.launch(&shape, &arguments, &[], &memory, &Options::default()).unwrap();
    match outcome.findings.first() {
        Some(finding) => Err(finding.to_string()),
        None => {
            let bytes = memory.read(to, 8 * Probe::COUNT as u64).unwrap();
            Ok(bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect())
        }
    }
}

/// Where the results of a probe differ from the recorded ones.
fn differences(probe: &Probe, recorded: &[u64], results: &[u64]) -> Vec<String> {
    let inputs = probe.inputs();
    let used = probe.operands.len();
    (0..Probe::COUNT)
        .filter(|at| !probe.accepts(recorded[*at], results[*at]))
        .map(|at| {
            format!("{:x?} gives {:#x}, recorded {:#x}", &inputs[at][..used], results[at], recorded[at])
        })
        .collect()
}

#[test]
fn every_instruction_gives_what_the_gpu_gave() {
    let probes = probes();
    let recorded = recorded().expect("the table of probes has changed: record it again");
    let program = ExecProgram::new(PtxModule::parse(&probe_module(&probes)).unwrap());
    let deviations: Vec<&str> = deviations().collect();
    let mut wrong = Vec::new();
    for (at, (probe, recorded)) in probes.iter().zip(&recorded).enumerate() {
        match run(&program, at, probe) {
            Err(text) => wrong.push(format!("{}: {text}", probe.text)),
            Ok(results) => {
                let found = differences(probe, recorded, &results);
                let is_listed = deviations.contains(&probe.text.as_str());
                if is_listed && found.is_empty() {
                    wrong.push(format!("{}: listed as a deviation, and none", probe.text));
                } else if let Some(first) = found.first().filter(|_| !is_listed) {
                    wrong.push(format!("{}: {} differ: {first}", probe.text, found.len()));
                }
            }
        }
    }
    let unknown = deviations.iter().filter(|text| probes.iter().all(|probe| probe.text != **text));
    wrong.extend(unknown.map(|text| format!("{text}: listed as a deviation, and no probe")));
    assert!(wrong.is_empty(), "{} of {} instructions:\n{}", wrong.len(), probes.len(), wrong.join("\n"));
}
