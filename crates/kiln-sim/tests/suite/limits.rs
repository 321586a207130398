//! Launch shapes, attributes, occupancy and loading: what the limits and the signature say.

use std::sync::{Arc, Mutex, OnceLock};

use kiln_driver::{
    Access, Code, Command, DeclaredSpan, DeviceAddress, DeviceInfo, Dim3, Driver, DriverExt, Error, Image,
    LaunchCommand, MemoryRequest, Object, ParameterSpan, Refusal,
};
use kiln_sim::{
    CodeEngine, CompileError, CompiledModule, DeviceConfig, HostKernel, KernelFault, KernelLibrary,
    LaunchContext, Machine, SimDevice, SimSignature, SimVariable,
};

use crate::rig::{Kernel, Rig, bytes_of, config};

fn shaped(rig: &Rig, change: impl FnOnce(&mut LaunchCommand<'_>)) -> Result<(), Error> {
    let arguments = 1u64.to_le_bytes();
    let Command::Launch(mut launch) = rig.command(Kernel::Spin, &arguments) else { unreachable!() };
    change(&mut launch);
    rig.device.submit(rig.streams[0], &Command::Launch(launch)).map(|_| ())
}

#[test]
fn shapes_outside_of_the_limits_are_refused() {
    let rig = Rig::seeded(0, 1);
    let refused = [
        shaped(&rig, |launch| launch.grid = Dim3::new(0, 1, 1)),
        shaped(&rig, |launch| launch.grid = Dim3::new(1, 65_536, 1)),
        shaped(&rig, |launch| launch.block = Dim3::new(1, 1, 65)),
        shaped(&rig, |launch| launch.block = Dim3::new(1025, 1, 1)),
        shaped(&rig, |launch| launch.block = Dim3::new(32, 33, 1)),
        shaped(&rig, |launch| launch.dynamic_shared_bytes = (227 << 10) + 1),
        shaped(&rig, |launch| launch.arguments = &[0; 7]),
        shaped(&rig, |launch| launch.arguments = &[0; 16]),
        shaped(&rig, |launch| launch.cluster = Some(Dim3::new(2, 1, 1))),
        shaped(&rig, |launch| (launch.grid, launch.cluster) = (16.into(), Some(16.into()))),
        shaped(&rig, |launch| launch.cluster = Some(Dim3::new(1, 0, 1))),
    ];
    for answer in refused {
        assert!(answer.as_ref().is_err_and(Error::is_refused), "{answer:?}");
    }
    shaped(&rig, |launch| (launch.grid, launch.cluster) = (16.into(), Some(8.into()))).unwrap();
    shaped(&rig, |launch| launch.grid = Dim3::new(0x7fff_ffff, 65_535, 65_535)).unwrap();
    rig.close();
}

#[test]
fn declared_memory_must_be_memory_of_the_device() {
    let rig = Rig::seeded(0, 1);
    let memory = rig.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
    let gone = rig.device.allocate(MemoryRequest::Direct { bytes: 4096 }).unwrap();
    rig.device.free(gone.id, None).unwrap();
    let device_bytes = rig.device.memory_info().unwrap().total_bytes;
    let start = memory.address.0;
    let declared = |address: u64, bytes: u64| {
        let (address, access) = (DeviceAddress(address), Access::Write);
        let spans = [DeclaredSpan { address, bytes, access, parameter: None }];
        let arguments = 1u64.to_le_bytes();
        let Command::Launch(launch) = rig.command(Kernel::Spin, &arguments) else { unreachable!() };
        let launch = LaunchCommand { declared: Some(&spans), ..launch };
        rig.device.submit(rig.streams[0], &Command::Launch(launch))
    };
    for (address, bytes) in [
        (start, 4097),
        (start - 1, 2),
        (start, device_bytes + 1),
        (start, u64::MAX),
        (u64::MAX, 1),
        (0, 1),
        (gone.address.0, 4096),
    ] {
        let error = declared(address, bytes).unwrap_err();
        assert!(error.is_refused() && error.to_string().contains("are not memory of this device"), "{error}");
    }
    declared(start, 4096).unwrap();
    declared(start, 0).unwrap();
    rig.device.synchronize(rig.streams[0]).unwrap();
    rig.device.free(memory.id, None).unwrap();
    rig.close();
}

#[test]
fn a_cooperative_launch_must_fit_at_once() {
    let rig = Rig::seeded(0, 1);
    let cooperative = |blocks: u32| {
        shaped(&rig, |launch| {
            (launch.cooperative, launch.grid, launch.block) = (true, blocks.into(), 1024.into());
        })
    };
    let limit = 2 * 132;
    cooperative(limit).unwrap();
    let error = cooperative(limit + 1).unwrap_err();
    let exceeded = Refusal::CooperativeResidencyExceeded { blocks: 265, limit: 264 };
    assert_eq!(error.refusal(), Some(&exceeded));
    rig.close();

    let old = Rig::new(&Machine::new(config(0).device(DeviceConfig::small())), 1);
    assert!(shaped(&old, |launch| launch.cooperative = true).unwrap_err().is_unsupported());
    assert!(shaped(&old, |launch| launch.cluster = Some(1.into())).unwrap_err().is_unsupported());
    old.close();
}

#[test]
fn attributes_and_occupancy_come_from_signature_and_limits() {
    let rig = Rig::seeded(0, 1);
    let function = rig.device.function(rig.module, "write").unwrap();
    assert_eq!(
        function,
        rig.device.function(rig.module, "write").unwrap(),
        "the same kernel, the same handle"
    );
    let spans = [(0, 8), (8, 8), (16, 1)].map(|(offset, bytes)| ParameterSpan { offset, bytes });
    assert_eq!(function.attributes.parameters.as_deref(), Some(&spans[..]));
    assert_eq!(function.attributes.max_threads_per_block, 1024);
    let occupancy = rig.device.occupancy(function.id, 256, 0).unwrap();
    assert_eq!(occupancy.blocks_per_multiprocessor, 8);
    assert_eq!(occupancy.suggested_grid_blocks * occupancy.suggested_block_threads, 132 * 2048);
    assert!(rig.device.occupancy(function.id, 0, 0).unwrap_err().is_refused());
    assert!(rig.device.occupancy(function.id, 2048, 0).unwrap_err().is_refused());
    rig.close();
}

#[test]
fn names_that_are_not_there_are_answered_with_those_that_are() {
    let rig = Rig::seeded(0, 1);
    let error = rig.device.function(rig.module, "wrote").unwrap_err();
    let Some(Refusal::NotFound { known, .. }) = error.refusal() else { panic!("{error}") };
    assert!(known.contains(&"write".to_string()));
    assert!(rig.device.global(rig.module, "x").unwrap_err().is_refused());
    let error = rig.device.load(&Image::HostKernels("rug")).unwrap_err();
    assert!(error.to_string().contains("rig"), "{error}");
    assert!(rig.device.load(&Image::Ptx(".version 8.0")).unwrap_err().is_unsupported());
    assert!(rig.device.load(&Image::Cubin(&[0x7f])).unwrap_err().is_unsupported());
    assert!(rig.device.native(Object::Module(rig.module)).unwrap_err().is_unsupported());
    rig.close();
}

/// An engine for a language of one word: the text is the byte its only kernel adds to the module's variable.
struct Adder;

struct Add {
    amount: u8,
    signature: SimSignature,
}

impl CodeEngine for Adder {
    fn compile(&self, ptx: &str, _device: &DeviceInfo) -> Result<CompiledModule, CompileError> {
        let amount = ptx
            .parse()
            .map_err(|_| CompileError { code: Code::INVALID_PTX, log: format!("`{ptx}` is not a number") })?;
        let variable =
            |name: &str, writable| SimVariable { name: name.into(), bytes: 4, contents: vec![10], writable };
        let kernel = Arc::new(Add { amount, signature: SimSignature::default() });
        Ok(CompiledModule {
            kernels: vec![("add".into(), kernel)],
            variables: vec![variable("sum", true), variable("constant", false)],
            ..CompiledModule::default()
        })
    }
}

impl kiln_sim::SimKernel for Add {
    fn signature(&self) -> &SimSignature {
        &self.signature
    }

    fn run(&self, launch: &LaunchContext<'_>) -> Result<(), KernelFault> {
        let (sum, constant) = (launch.globals()[0].0, launch.globals()[1].0);
        let mut port = launch.port();
        let value = port.load::<u8>(sum)? + self.amount + port.load::<u8>(constant)?;
        Ok(port.store(sum, value)?)
    }
}

#[test]
fn an_engine_turns_text_into_kernels_and_variables() {
    let machine = Machine::new(config(0).engine(Arc::new(Adder)));
    let rig = Rig::new(&machine, 1);
    assert!(rig.device.info().features.ptx);
    let error = rig.device.load(&Image::Ptx("x")).unwrap_err();
    assert_eq!(error.code(), Some(Code::INVALID_PTX));
    let module = rig.device.load(&Image::Ptx("5")).unwrap();
    let function = rig.device.function(module, "add").unwrap();
    let sum = rig.device.global(module, "sum").unwrap();
    assert_eq!(sum.bytes, 4);
    assert!(rig.device.free(sum.id, None).unwrap_err().is_refused());
    let Command::Launch(launch) = rig.command(Kernel::Panic, &[]) else { unreachable!() };
    let launch = Command::Launch(LaunchCommand { function: function.id, ..launch });
    rig.device.submit(rig.streams[0], &launch).unwrap();
    let host = rig.host(4);
    rig.download(0, sum.id, &host);
    rig.sync(0);
    assert_eq!(bytes_of(&host), [25, 0, 0, 0]);
    rig.device.destroy(module.into()).unwrap();
    assert!(rig.device.submit(rig.streams[0], &launch).unwrap_err().is_refused());
    assert!(rig.device.fill(rig.streams[0], sum.id.into(), 0, 1).unwrap_err().is_refused());
    rig.close();
    let report = machine.finish();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_kernel_may_not_call_its_own_device() {
    let device: Arc<OnceLock<Arc<SimDevice>>> = Arc::default();
    let answers: Arc<Mutex<Vec<_>>> = Arc::default();
    let (asked, heard) = (device.clone(), answers.clone());
    let ask = HostKernel::new("ask").body(move |_| {
        heard.lock().unwrap().extend(asked.get().map(|device| device.memory_info()));
        Ok(())
    });
    let machine = Machine::new(config(0).library(KernelLibrary::new("nosy").kernel(ask)));
    let rig = Rig::new(&machine, 1);
    device.set(rig.device.clone()).unwrap();
    let module = rig.device.load(&Image::HostKernels("nosy")).unwrap();
    let function = rig.device.function(module, "ask").unwrap().id;
    let Command::Launch(launch) = rig.command(Kernel::Panic, &[]) else { unreachable!() };
    rig.device.submit(rig.streams[0], &Command::Launch(LaunchCommand { function, ..launch })).unwrap();
    rig.sync(0);
    let answers = answers.lock().unwrap();
    assert!(matches!(answers[0].as_ref().unwrap_err().refusal(), Some(Refusal::Busy { .. })), "{answers:?}");
}
