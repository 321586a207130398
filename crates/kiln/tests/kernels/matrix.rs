//! Tensor cores: every form gives on the simulated device what it gives on the GPU.

use kiln::probe::TestGate;
use kiln::{DeviceRuntime, code::Source};
use kiln_driver::DeviceKind;
use kiln_kernels::{MatrixProbe, matrix_probes, record_matrices};

use crate::stage::{CodeFolder, Kind, Stage};

/// Inputs are made from each of these; the recording has the first.
const SEEDS: [u64; 6] = [0, 1, 2, 3, 4, 5];

fn run(gpu: &DeviceRuntime, probe: &MatrixProbe, seed: u64) -> kiln::Result<Vec<u8>> {
    let kernel = gpu.kernel(Source::Ptx(&probe.module()), "probe")?;
    let inputs = gpu.upload(&probe.inputs(seed))?;
    let results = gpu.zeros::<u8>(probe.result_bytes())?;
    let (warps, lanes) = (MatrixProbe::WARPS as u32, MatrixProbe::LANES as u32);
    let mut launch = gpu.launch(&kernel);
    launch.grid(warps).block(lanes).read(&inputs).write(&results);
    // SAFETY: the kernel reads and writes what its inputs and results hold, and nothing else.
    unsafe { launch.submit() }?;
    results.download()
}

#[test]
fn matrix_instructions_on_the_gpu_are_those_of_the_simulated_device() {
    const NAME: &str = "matrix_instructions_on_the_gpu_are_those_of_the_simulated_device";
    let gpu = match kiln::probe::gpu_for_test(NAME).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => gpu,
        TestGate::Ready(_) => return println!("skipped: the policy asks for a simulated device"),
        TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    };
    let code = CodeFolder::new("matrix");
    let simulated = Stage::open(Kind::Simulated, 0, &code.0);
    let mut recording = Vec::new();
    let mut wrong = Vec::new();
    for probe in matrix_probes() {
        for seed in SEEDS {
            let there = run(gpu, &probe, seed).unwrap();
            let here = run(simulated.runtime(), &probe, seed).unwrap();
            let size = probe.register_bytes();
            let differ = here.chunks(size).zip(there.chunks(size)).filter(|(a, b)| a != b).count();
            if differ != 0 {
                wrong.push(format!("{} with seed {seed}: {differ} registers differ", probe.text));
            }
            if seed == SEEDS[0] {
                recording.push(there);
            }
        }
    }
    if let Some(folder) = std::env::var_os("KILN_RECORD") {
        let file = std::path::Path::new(&folder).join("h200-matrix.bin");
        std::fs::write(file, record_matrices(&recording)).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
