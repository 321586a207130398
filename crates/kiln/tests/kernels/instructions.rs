//! Single instructions: every form gives on the simulated device what it gives on the GPU.

use kiln::probe::TestGate;
use kiln::{DeviceRuntime, code::Source};
use kiln_driver::DeviceKind;
use kiln_kernels::{Probe, deviations, probe_module, probes, record};

use crate::stage::{CodeFolder, Kind, Stage};

/// Probes of one module: a compiler takes all of them at once only slowly.
const PER_MODULE: usize = 100;

/// The results of some probes.
fn run(gpu: &DeviceRuntime, probes: &[Probe]) -> kiln::Result<Vec<Vec<u64>>> {
    let module = probe_module(probes);
    let mut all = Vec::new();
    for (at, probe) in probes.iter().enumerate() {
        let kernel = gpu.kernel(Source::Ptx(&module), &format!("probe_{at}"))?;
        let inputs = gpu.upload(probe.inputs().as_flattened())?;
        let results = gpu.zeros::<u64>(Probe::COUNT)?;
        let mut launch = gpu.launch(&kernel);
        launch.grid(1).block(Probe::COUNT as u32).read(&inputs).write(&results);
        // SAFETY: the kernel reads and writes what its inputs and results hold, and nothing else.
        unsafe { launch.submit() }?;
        all.push(results.download()?);
    }
    Ok(all)
}

/// Compares every probe that is not listed as a deviation; with `KILN_RECORD=FOLDER`, writes what the GPU answered as `h200.bin`.
#[test]
fn instructions_on_the_gpu_are_those_of_the_simulated_device() {
    const NAME: &str = "instructions_on_the_gpu_are_those_of_the_simulated_device";
    let gpu = match kiln::probe::gpu_for_test(NAME).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind != DeviceKind::Simulated => gpu,
        TestGate::Ready(_) => return println!("skipped: the policy asks for a simulated device"),
        TestGate::Skipped(absence) => return println!("skipped: {absence}"),
    };
    let code = CodeFolder::new("instructions");
    let simulated = Stage::open(Kind::Simulated, 0, &code.0);
    let (mut recording, mut wrong) = (Vec::new(), Vec::new());
    for probes in probes().chunks(PER_MODULE) {
        let (there, here) = (run(gpu, probes).unwrap(), run(simulated.runtime(), probes).unwrap());
        let pairs = probes.iter().zip(there.iter().zip(&here));
        for (probe, (there, here)) in pairs.filter(|(probe, _)| deviations().all(|text| text != probe.text)) {
            let pairs = || there.iter().zip(here).enumerate().filter(|(_, (a, b))| !probe.accepts(**a, **b));
            if let Some((at, (there, here))) = pairs().next() {
                let inputs = &probe.inputs()[at][..probe.operands.len()];
                let count = pairs().count();
                wrong.push(format!(
                    "{}: {count} differ, first {inputs:x?}: {here:#x} here, {there:#x} there",
                    probe.text
                ));
            }
        }
        recording.extend(there);
    }
    if let Some(folder) = std::env::var_os("KILN_RECORD") {
        std::fs::write(std::path::Path::new(&folder).join("h200.bin"), record(&recording)).unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), probes().len(), wrong.join("\n"));
}
