//! Variables of modules, by name: typed, and ordered with the kernels that use them.

use std::sync::Arc;

use kiln::code::CodeError;
use kiln::error::{ErrorKind, Misuse};
use kiln::launch::{Module, Number};
use kiln::telemetry::Gauge;
use kiln::{DeviceRuntime, GpuRef, Kernel};
use kiln_driver::Image;
use kiln_sim::{Machine, MachineConfig, PtxEngine};

use super::runtime;

const PTX: &str = include_str!("variables.ptx");
const SEEDS: u64 = 30;

/// Runs a program for some seeds. The simulator must find nothing: a missing edge is a race.
fn run(program: impl Fn(&DeviceRuntime, &Module)) {
    for seed in 0..SEEDS {
        let machine = Machine::new(MachineConfig::seeded(seed).engine(Arc::new(PtxEngine::default())));
        {
            let gpu = runtime(&machine);
            let module = gpu.source(PTX).module().unwrap();
            program(&gpu, &module);
        }
        let report = machine.finish();
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

fn kernel(gpu: &DeviceRuntime, name: &str) -> Kernel {
    gpu.kernel(PTX, name).unwrap()
}

#[test]
fn variables_have_their_first_values_and_hold_what_is_written() {
    run(|gpu, module| {
        let counter = module.global::<u32>("counter").unwrap();
        assert_eq!((counter.len(), counter.download().unwrap()), (1, vec![5]));
        let table = module.global::<[u32; 2]>("table").unwrap();
        assert_eq!(table.download().unwrap(), [[0; 2]; 3]);
        table.view(1..).unwrap().fill([7, 8]).unwrap();
        assert_eq!(table.download().unwrap(), [[0, 0], [7, 8], [7, 8]]);
        let bytes = module.global::<u8>("table").unwrap();
        assert_eq!((bytes.len(), bytes.block_id()), (24, table.block_id()), "the same memory");
        let factor = module.global::<f32>("factor").unwrap();
        assert_eq!(factor.download().unwrap(), [2.0], "a constant");
        factor.upload(&[0.5]).unwrap();
        assert_eq!(factor.download().unwrap(), [0.5]);
        let from_device = gpu.upload(&[4.0_f32]).unwrap();
        factor.copy_from(&from_device).unwrap();
        assert_eq!(factor.download().unwrap(), [4.0]);
    });
}

#[test]
fn a_constant_is_written_between_the_kernels_that_read_it() {
    run(|gpu, module| {
        let (one, two) = (gpu.stream().unwrap(), gpu.stream().unwrap());
        let (scaled, from) = (kernel(gpu, "scaled"), gpu.upload(&[10.0_f32]).unwrap());
        let results: [GpuRef<f32>; 4] = [(); 4].map(|()| gpu.allocate(1).unwrap());
        let launch = |stream, to| {
            // SAFETY: the kernel touches one element of each.
            unsafe { gpu.launch(&scaled).threads(1).on(stream).read(&from).write(to).submit() }.unwrap();
        };
        launch(&one, &results[0]);
        let factor = module.global::<f32>("factor").unwrap();
        factor.upload_on(&two, &[3.0]).unwrap();
        launch(&one, &results[1]);
        launch(&two, &results[2]);
        factor.upload(&[4.0]).unwrap();
        launch(&two, &results[3]);
        let seen = results.map(|result| result.download().unwrap()[0]);
        assert_eq!(seen, [20.0, 30.0, 30.0, 40.0]);
    });
}

#[test]
fn a_device_variable_is_ordered_with_every_kernel_of_its_module() {
    run(|gpu, module| {
        let streams = [gpu.stream().unwrap(), gpu.stream().unwrap()];
        let count = kernel(gpu, "count");
        let counter = module.global::<u32>("counter").unwrap();
        for turn in 0..6 {
            // SAFETY: the kernel touches its variable alone.
            unsafe { gpu.launch(&count).threads(1).on(&streams[turn % 2]).submit() }.unwrap();
        }
        assert_eq!(counter.download().unwrap(), [11]);
        counter.fill_on(&streams[0], 100).unwrap();
        // SAFETY: as above.
        unsafe { gpu.launch(&count).threads(1).on(&streams[1]).submit() }.unwrap();
        assert_eq!(counter.download().unwrap(), [101]);
        let mut builder = gpu.graph();
        // SAFETY: as above.
        unsafe { builder.launch(&count).threads(1).record() }.unwrap();
        let graph = builder.build().unwrap();
        counter.fill_on(&streams[0], 7).unwrap();
        graph.replay_on(&streams[1]).unwrap();
        graph.replay_on(&streams[0]).unwrap();
        assert_eq!(counter.download().unwrap(), [9]);
    });
}

#[test]
fn a_variable_can_be_an_argument() {
    run(|gpu, module| {
        let (keep, from) = (kernel(gpu, "keep"), gpu.upload(&[0x1122_3344_5566_7788_u64]).unwrap());
        let table = module.global::<u64>("table").unwrap();
        // SAFETY: the kernel touches one element of each.
        unsafe { gpu.launch(&keep).threads(1).read(&from).read_write(&table).submit() }.unwrap();
        assert_eq!(table.download().unwrap(), [0x1122_3344_5566_7788, 0, 0]);
    });
}

#[test]
fn a_variable_keeps_its_module_loaded_and_lets_it_go() {
    run(|gpu, module| {
        let modules = || gpu.telemetry().snapshot().gauge(Gauge::LoadedModules);
        let own = gpu.load_module(&Image::Ptx(PTX)).unwrap();
        let counter = own.global::<u32>("counter").unwrap();
        let shared = module.global::<u32>("counter").unwrap();
        counter.fill(70).unwrap();
        drop(own);
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert_eq!(modules(), 2);
        assert_eq!(
            (counter.download().unwrap(), shared.download().unwrap()),
            (vec![70], vec![5]),
            "each module has its own"
        );
        drop(counter);
        gpu.synchronize().unwrap();
        gpu.reap_pending().unwrap();
        assert_eq!(modules(), 1);
    });
}

#[test]
fn a_name_or_a_type_that_is_wrong_is_an_error_that_says_so() {
    run(|gpu, module| {
        let error = |result: kiln::Result<()>| match result.unwrap_err().kind() {
            ErrorKind::Code(error) => error.clone(),
            other => panic!("{other}"),
        };
        let wrong = error(module.global::<u32>("countr").map(drop));
        let CodeError::UnknownVariable { name, nearest } = &wrong else { panic!("{wrong}") };
        assert_eq!((name.as_str(), nearest[0].as_str()), ("countr", "counter"));
        assert!(wrong.to_string().contains("`counter`"), "{wrong}");
        let wrong = error(module.global::<u64>("counter").map(drop));
        let expected = CodeError::VariableSize { name: "counter".into(), bytes: 4, element_bytes: 8 };
        assert_eq!(wrong, expected);
        let wrong = error(module.global::<f32>("counter").map(drop));
        let (declared, given) = (Number::Whole, Number::Float);
        assert_eq!(wrong, CodeError::VariableNumber { name: "counter".into(), declared, given });
        assert!(module.global::<i32>("counter").is_ok() && module.global::<[f32; 2]>("table").is_ok());

        let without = gpu.source(super::COPY).module().unwrap();
        let wrong = error(without.global::<u32>("counter").map(drop));
        assert_eq!(wrong, CodeError::UnknownVariable { name: "counter".into(), nearest: Vec::new() });
        assert_eq!(module.global::<u32>("counter").unwrap().download().unwrap(), [5], "nothing was changed");
    });
    let machine = Machine::new(MachineConfig::seeded(1).engine(Arc::new(PtxEngine::default())));
    let gpu = runtime(&machine);
    let module = gpu.source(PTX).module().unwrap();
    drop(gpu);
    let error = module.global::<u32>("counter").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::RuntimeGone)), "{error}");
}
