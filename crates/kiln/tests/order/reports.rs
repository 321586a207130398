//! A program run for some seeds of the simulated device, and what the device found.

use kiln::checking::Findings;
use kiln::{DeviceRuntime, GpuRef, RuntimeConfig};
use kiln_sim::{Machine, MachineConfig, SimReport};

use super::library::Library;

pub(crate) const LEN: usize = 16;
const SEEDS: u64 = 40;

/// Runs a program beside another library and with a buffer of zeros; the reports of those seeds that found something.
pub(crate) fn run(program: impl Fn(&DeviceRuntime, &Library, &GpuRef<u32>)) -> Vec<SimReport> {
    let of_seed = |seed| {
        let machine = Machine::new(MachineConfig::seeded(seed));
        {
            let gpu = runtime(&machine);
            let library = Library::new(gpu.driver());
            let buffer = gpu.upload(&[0_u32; LEN]).unwrap();
            gpu.synchronize().unwrap();
            program(&gpu, &library, &buffer);
            gpu.synchronize().unwrap();
            library.close();
        }
        machine.finish()
    };
    (0..SEEDS).map(of_seed).filter(|report| !report.is_clean()).collect()
}

pub(crate) fn runtime(machine: &Machine) -> DeviceRuntime {
    // What the machine found is judged at the end, also where an edge is left out on purpose.
    let config = RuntimeConfig { findings: Findings::Report, ..RuntimeConfig::default() };
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config).unwrap()
}

pub(crate) fn assert_clean(reports: &[SimReport]) {
    assert!(reports.is_empty(), "{}", reports[0]);
}

pub(crate) fn assert_races(reports: &[SimReport], what: &str) {
    let races = reports.iter().flat_map(|report| &report.findings).filter(|found| found.kind.is_race());
    assert!(races.count() > 0, "{what}: the missing edge was not caught");
}
