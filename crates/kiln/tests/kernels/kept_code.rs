//! Machine code of PTX and of programs that is kept on disk, and variables of modules, on a GPU.

use kiln::DeviceRuntime;
use kiln::code_cache::{CacheConfig, CachePlace, EntryKind, EntryState};
use kiln::probe::TestGate;
use kiln::program::{Backend, Bindings, Program};
use kiln::{Kernel, RuntimeConfig};
use kiln_driver::DeviceKind;

use super::stage::CodeFolder;

const COPY: &str = include_str!("../copy.ptx");
const VARIABLES: &str = include_str!("../suite/loaded_code/variables.ptx");

/// A separate runtime over the GPU, with its cache in a folder; none where there is no GPU, which is counted.
fn gpu(test: &str, place: &CachePlace) -> Option<DeviceRuntime> {
    match kiln::probe::gpu_for_test(test).unwrap() {
        TestGate::Ready(gpu) if gpu.info().kind == DeviceKind::Cuda => {
            let cache = CacheConfig { place: place.clone(), ..CacheConfig::default() };
            let config = RuntimeConfig { cache, ..RuntimeConfig::default() };
            Some(DeviceRuntime::from_driver(gpu.driver().clone(), config).unwrap())
        }
        TestGate::Ready(_) => None,
        TestGate::Skipped(absence) => {
            println!("skipped: {absence}");
            None
        }
    }
}

fn copy(gpu: &DeviceRuntime, kernel: &Kernel) {
    let (from, to) = (gpu.upload(&[41_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    // SAFETY: the kernel touches one element of each.
    unsafe { gpu.launch(kernel).threads(1).read(&from).write(&to).submit() }.unwrap();
    assert_eq!(to.download().unwrap(), [41]);
}

#[test]
fn ptx_and_programs_are_loaded_as_machine_code_the_second_time_on_a_gpu() {
    const NAME: &str = "ptx_and_programs_are_loaded_as_machine_code_the_second_time_on_a_gpu";
    let folder = CodeFolder::new("kept-code");
    let program = Program::parse("kernel one(out x: u32[]) block(32) over(x) { x[global.x] = 1; }").unwrap();
    let mut attributes = Vec::new();
    for expected in [(0, 2, 2), (2, 0, 0)] {
        let Some(gpu) = gpu(NAME, &folder.0) else { return };
        let kernel = gpu.kernel(COPY, "copy").unwrap();
        copy(&gpu, &kernel);
        attributes.push(kernel.attributes().clone());
        let pipeline = Backend::over(gpu.clone()).compile(&program).unwrap();
        let mut x: Vec<u32> = Vec::new();
        pipeline.dispatch(Bindings::new().output_of("x", 100, &mut x)).unwrap();
        assert_eq!(x, [1_u32; 100]);
        let counters = gpu.code_counters();
        assert_eq!((counters.disk.hits, counters.disk.misses, counters.disk.stores), expected);
        println!("loading took {:?}; the disk saved {:?}", counters.load_time, counters.disk.time_saved);
        let kinds: Vec<_> = gpu.disk_cache().verify().unwrap();
        let is_code =
            |verdict: &EntryState| matches!(verdict, EntryState::Good { kind: EntryKind::Cubin, .. });
        assert!(kinds.len() == 2 && kinds.iter().all(is_code), "{kinds:?}");
    }
    assert_eq!(attributes[0], attributes[1], "the same code");
}

#[test]
fn variables_are_read_written_and_ordered_on_a_gpu() {
    let folder = CodeFolder::new("variables");
    let Some(gpu) = gpu("variables_are_read_written_and_ordered_on_a_gpu", &folder.0) else { return };
    let (scaled, count) = (gpu.kernel(VARIABLES, "scaled").unwrap(), gpu.kernel(VARIABLES, "count").unwrap());
    let module = scaled.module();
    let (factor, counter) =
        (module.global::<f32>("factor").unwrap(), module.global::<u32>("counter").unwrap());
    assert_eq!((factor.download().unwrap(), counter.download().unwrap()), (vec![2.0], vec![5]));
    let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
    let (from, to) = (gpu.upload(&[10.0_f32]).unwrap(), gpu.zeros::<f32>(1).unwrap());
    for turn in 0..100 {
        factor.upload_on(&streams[turn % 2], &[turn as f32]).unwrap();
        let stream = &streams[(turn + 1) % 2];
        // SAFETY: the kernels touch one element of each buffer, and their variables.
        unsafe {
            gpu.launch(&scaled).threads(1).on(stream).read(&from).write(&to).submit().unwrap();
            gpu.launch(&count).threads(1).on(stream).submit().unwrap();
        }
        assert_eq!(to.download().unwrap(), [10.0 * turn as f32]);
    }
    assert_eq!(counter.download().unwrap(), [105]);
    assert!(module.global::<f32>("factr").is_err());
}
