//! Tensor cores: every form gives on the simulated device what it gives on the GPU.

use kiln::probe::TestGate;
use kiln::{DeviceRuntime, code::Source};
use kiln_driver::DeviceKind;
use kiln_kernels::{
    CaseArguments, MatrixProbe, TensorProbe, cases, matrix_probes, record_matrices, record_tensors,
    sparse_float8_probes, tensor_probes,
};

use crate::stage::{CodeFolder, Kind, Stage};

/// Inputs are made from each of these; the recording has the first.
const SEEDS: [u64; 6] = [0, 1, 2, 3, 4, 5];

fn run(gpu: &DeviceRuntime, probe: &MatrixProbe, seed: u64) -> kiln::Result<Vec<u8>> {
    run_module(gpu, &probe.module(), &probe.inputs(seed), probe.result_bytes(), MatrixProbe::WARPS)
}

/// The results of a kernel of one warp in each of some blocks.
fn run_module(
    gpu: &DeviceRuntime,
    module: &str,
    inputs: &[u8],
    result_bytes: usize,
    blocks: usize,
) -> kiln::Result<Vec<u8>> {
    let kernel = gpu.kernel(Source::Ptx(module), "probe")?;
    let inputs = gpu.upload(inputs)?;
    let results = gpu.zeros::<u8>(result_bytes)?;
    let (warps, lanes) = (blocks as u32, MatrixProbe::LANES as u32);
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

#[test]
fn wmma_and_sparse_products_on_the_gpu_are_those_of_the_simulated_device() {
    const NAME: &str = "wmma_and_sparse_products_on_the_gpu_are_those_of_the_simulated_device";
    let gpu = match kiln::probe::gpu_for_test(NAME).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => gpu,
        TestGate::Ready(_) => return println!("skipped: the policy asks for a simulated device"),
        TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    };
    let (wrong, recording) = compare_tensors(gpu, &tensor_probes());
    if let Some(folder) = std::env::var_os("KILN_RECORD") {
        let file = std::path::Path::new(&folder).join("h200-tensor.bin");
        std::fs::write(file, record_tensors(&recording)).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `mma.sp` of 8-bit floats, of which no answers are kept.
#[test]
fn sparse_products_of_8_bit_floats_on_the_gpu_are_those_of_the_simulated_device() {
    const NAME: &str = "sparse_products_of_8_bit_floats_on_the_gpu_are_those_of_the_simulated_device";
    let gpu = match kiln::probe::gpu_for_test(NAME).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => gpu,
        TestGate::Ready(_) => return println!("skipped: the policy asks for a simulated device"),
        TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    };
    let (wrong, _) = compare_tensors(gpu, &sparse_float8_probes());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where the answers of a GPU and the simulated device differ, and what the GPU answered to the first seed.
fn compare_tensors(gpu: &DeviceRuntime, probes: &[TensorProbe]) -> (Vec<String>, Vec<Vec<u8>>) {
    let code = CodeFolder::new("tensor");
    let simulated = Stage::open(Kind::Simulated, 0, &code.0);
    let mut recording = Vec::new();
    let mut wrong = Vec::new();
    for probe in probes {
        for seed in SEEDS {
            let run = |gpu: &DeviceRuntime| {
                let inputs = probe.inputs(seed);
                run_module(gpu, &probe.module(), &inputs, probe.result_bytes(), TensorProbe::BLOCKS).unwrap()
            };
            let (there, here) = (run(gpu), run(simulated.runtime()));
            let size = probe.element_bytes();
            let pairs = || here.chunks(size).zip(there.chunks(size));
            let differ = pairs().filter(|(a, b)| a != b).count();
            if let Some((at, (a, b))) = pairs().enumerate().find(|(_, (a, b))| a != b) {
                let text = &probe.text;
                wrong.push(format!(
                    "{text}, seed {seed}: {differ} differ, the first is {at}: {a:x?} here, {b:x?} there"
                ));
            }
            if seed == SEEDS[0] {
                recording.push(there);
            }
        }
    }
    (wrong, recording)
}

/// The kernels of `tensor_cores.cu` from one PTX on both devices. The products must have the same bits: their inputs are finite, and the order inside an
/// instruction is recorded. Attention takes `ex2.approx`, which the simulated device computes to the nearest number: there the case says how close.
#[test]
fn programs_on_the_tensor_cores_give_the_bits_of_the_simulated_device() {
    const NAME: &str = "programs_on_the_tensor_cores_give_the_bits_of_the_simulated_device";
    let programs: Vec<_> = cases().iter().filter(|case| case.source.file == "tensor_cores.cu").collect();
    let products = programs.iter().filter(|case| case.name.starts_with("product_")).count();
    assert_eq!((products, programs.len()), (4, 6));
    match kiln::probe::gpu_for_test(NAME).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => {}
        TestGate::Ready(_) => return println!("skipped: the policy asks for a simulated device"),
        TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    }
    let code = CodeFolder::new("tensor-programs");
    let there = Stage::open(Kind::Cuda, 0, &code.0);
    let bytes = |arguments: &CaseArguments| -> Vec<Vec<u8>> {
        arguments.buffers().map(|buffer| buffer.data.to_bytes()).collect()
    };
    let mut wrong = Vec::new();
    for case in programs {
        for seed in SEEDS {
            let arguments = case.arguments(seed);
            let here = Stage::open(Kind::Simulated, seed, &code.0);
            let simulated = here.run_ptx(case, &arguments).unwrap();
            here.assert_clean();
            let on_gpu = there.run_ptx(case, &arguments).unwrap();
            if case.name.starts_with("product_") && bytes(&simulated) != bytes(&on_gpu) {
                wrong.push(format!("{} with seed {seed}: other bits", case.name));
            }
            let expected = case.expected(&arguments);
            for (device, result) in [("simulated", &simulated), ("GPU", &on_gpu)] {
                if let Err(text) = expected.compare(result) {
                    wrong.push(format!("{} with seed {seed}, {device}: {text}", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
