//! Code that is loaded: how long, how much of it fits, and what a device says that cannot run it.

mod variables;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kiln::code_cache::{CacheConfig, CachePlace};
use kiln::{
    DeviceRuntime, RuntimeConfig,
    code::{CodeError, Source},
    error::ErrorKind,
    launch::ParameterKind,
};
use kiln_driver::call::{Answer, Call};
use kiln_driver::layer::{Layer, Layered};
use kiln_driver::{Code, Dim3, Image, Object};
use kiln_sim::{FaultPlan, Machine, MachineConfig, PlannedFault, PtxEngine};

const COPY: &str = include_str!("../copy.ptx");

/// Modules a driver was asked to load and to unload.
#[derive(Default)]
struct Traffic {
    loads: AtomicU64,
    unloads: AtomicU64,
}

impl Traffic {
    fn counts(&self) -> (u64, u64) {
        (self.loads.load(Ordering::Relaxed), self.unloads.load(Ordering::Relaxed))
    }
}

impl Layer for Traffic {
    fn after(&self, call: &Call<'_>, _: Result<Answer<'_>, &kiln_driver::Error>) {
        match call {
            Call::Load { .. } => _ = self.loads.fetch_add(1, Ordering::Relaxed),
            Call::Destroy { object: Object::Module(_) } => _ = self.unloads.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }
}

fn config() -> RuntimeConfig {
    let cache = CacheConfig { place: CachePlace::Off, ..CacheConfig::default() };
    RuntimeConfig { cache, ..RuntimeConfig::default() }
}

fn machine(faults: FaultPlan) -> Machine {
    Machine::new(MachineConfig::seeded(3).engine(Arc::new(PtxEngine::default())).faults(faults))
}

fn runtime(machine: &Machine) -> DeviceRuntime {
    DeviceRuntime::from_driver(machine.device(0).unwrap(), config()).unwrap()
}

#[test]
fn a_module_is_loaded_once_and_unloaded_when_its_last_kernel_and_its_work_are_done() {
    let machine = machine(FaultPlan::none());
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Traffic::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), config()).unwrap();
    let traffic = || driver.layer().counts();
    let (from, to) = (gpu.upload(&[7_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    gpu.synchronize().unwrap();

    let first = gpu.kernel(COPY, "copy").unwrap();
    let second = gpu.kernel(COPY, "copy").unwrap();
    assert_eq!((traffic(), gpu.code_counters().memory_hits), ((1, 0), 1));
    drop(first);
    gpu.synchronize().unwrap();
    assert_eq!(traffic(), (1, 0), "a caller still has it");

    // SAFETY: the kernel touches one element of each.
    unsafe { gpu.launch(&second).grid(1).block(1).read(&from).write(&to).submit() }.unwrap();
    drop(second);
    assert_eq!(traffic(), (1, 0), "its work is not done");
    assert_eq!(to.download().unwrap(), [7]);
    gpu.synchronize().unwrap();
    gpu.reap_pending().unwrap();
    assert_eq!(traffic(), (1, 1), "no thread has it and nothing runs");

    let third = gpu.kernel(COPY, "copy").unwrap();
    assert_eq!((traffic(), gpu.code_counters().memory_hits), ((2, 1), 1));
    drop((third, from, to));
    gpu.synchronize().unwrap();
    drop(gpu);
    assert_eq!(traffic(), (2, 2));
    let report = machine.finish();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn a_module_outlives_every_other_one_that_comes_and_goes() {
    let machine = machine(FaultPlan::none());
    let driver = Arc::new(Layered::new(machine.device(0).unwrap(), Traffic::default()));
    let gpu = DeviceRuntime::from_driver(driver.clone(), config()).unwrap();
    let kept = gpu.kernel(COPY, "copy").unwrap();
    for number in 0..50 {
        let other = COPY.replace("copy", &format!("copy_{number}"));
        gpu.kernel(other.as_str(), &format!("copy_{number}")).unwrap();
    }
    assert_eq!(driver.layer().counts(), (51, 50));
    let again = gpu.kernel(COPY, "copy").unwrap();
    assert_eq!((driver.layer().counts(), gpu.code_counters().memory_hits), ((51, 50), 1));
    drop((kept, again));
}

#[test]
fn occupancy_follows_from_the_kernel_and_its_suggestion_fills_the_device() {
    const KERNELS: &str = "
        .version 7.0
        .target sm_70
        .address_size 64
        .visible .entry plain() { ret; }
        .visible .entry bounded() .maxntid 96, 1, 1 { ret; }
        .visible .entry shared() {
            .shared .align 4 .b8 tile[40000];
            .reg .b32 %r<2>;
            mov.u32 %r1, tile;
            st.shared.u32 [%r1], %r1;
            ret;
        }";
    let machine = machine(FaultPlan::none());
    let gpu = runtime(&machine);
    let limits = gpu.info().limits.clone();
    let kernel = |name: &str| gpu.kernel(KERNELS, name).unwrap();

    let plain = kernel("plain");
    let small = plain.occupancy(32, 0).unwrap();
    assert_eq!(small.blocks_per_multiprocessor, limits.max_blocks_per_multiprocessor);
    let all = plain.occupancy(256, 0).unwrap();
    assert_eq!(all.blocks_per_multiprocessor * 256, limits.max_threads_per_multiprocessor);
    let filled = plain.occupancy(all.suggested_block_threads, 0).unwrap();
    assert_eq!(
        filled.blocks_per_multiprocessor * all.suggested_block_threads,
        limits.max_threads_per_multiprocessor
    );
    assert_eq!(
        all.suggested_grid_blocks,
        filled.blocks_per_multiprocessor * limits.multiprocessors,
        "one wave of such blocks"
    );

    let bounded = kernel("bounded");
    assert_eq!(bounded.attributes().max_threads_per_block, 96);
    let fitting = bounded.occupancy(64, 0).unwrap();
    assert!(fitting.suggested_block_threads <= 96 && fitting.suggested_block_threads.is_multiple_of(32));
    assert!(bounded.occupancy(128, 0).unwrap_err().driver().is_some_and(kiln_driver::Error::is_refused));

    let shared = kernel("shared");
    assert_eq!(shared.attributes().static_shared_bytes, 40_000);
    let few = shared.occupancy(256, 0).unwrap().blocks_per_multiprocessor;
    let fewer = shared.occupancy(256, 60_000).unwrap().blocks_per_multiprocessor;
    assert!(fewer < few && few < 8, "{fewer} {few}");
    for (threads, dynamic) in [(0, 0), (limits.max_threads_per_block + 1, 0), (256, 1 << 20), (256, u32::MAX)]
    {
        assert!(plain.occupancy(threads, dynamic).is_err(), "{threads} {dynamic}");
    }
    drop(gpu);
    assert!(plain.occupancy(32, 0).is_err(), "the runtime is gone");
}

/// A kernel of one thread that comes to an instruction in its line 12.
fn with_instruction(instruction: &str) -> String {
    format!(
        ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 at) {{\n\
         .shared .align 16 .b8 tile[256];\n.reg .pred %p<2>;\n.reg .b32 %r<32>;\n.reg .f32 %f<32>;\n\
         .reg .b64 %rd<8>;\nld.param.u64 %rd1, [at];\nmov.u32 %r1, tile;\n{instruction}\nret;\n}}\n"
    )
}

#[test]
fn an_instruction_only_a_gpu_has_is_refused_at_submit_by_name_and_line() {
    let instructions = [
        "tcgen05.wait::ld.sync.aligned;",
        "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r2,%r3}, [%r1];",
        "multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%rd1];",
    ];
    for instruction in instructions {
        let machine = machine(FaultPlan::none());
        let gpu = runtime(&machine);
        let text = with_instruction(instruction);
        let word = instruction.split([' ', ';']).next().unwrap();
        let kernel = gpu.kernel(text.as_str(), "k").unwrap_or_else(|error| panic!("{word}: {error}"));
        let at = gpu.zeros::<u32>(64).unwrap();
        let mut launch = gpu.launch(&kernel);
        launch.grid(Dim3::from(1)).block(Dim3::from(32)).read_write(&at);
        // SAFETY: the simulated device checks what its kernels touch.
        let error = unsafe { launch.submit() }.unwrap_err();
        let told = format!("{error:#}");
        assert!(told.contains(word) && told.contains("line 12"), "{word}: {told}");
        assert!(!error.is_sticky() && !error.is_lost(), "{word}: {told}");
        // Nothing was queued, and the device goes on.
        assert_eq!(at.download().unwrap(), [0; 64], "{word}");
        gpu.synchronize().unwrap();
        assert!(machine.findings().is_empty(), "{word}");
    }
}

/// Whether a branch is taken is known only when it runs, so a kernel is refused for what it may come to.
#[test]
fn such_an_instruction_behind_a_branch_is_refused_too() {
    let machine = machine(FaultPlan::none());
    let gpu = runtime(&machine);
    let text = with_instruction("setp.eq.u64 %p1, %rd1, 0;\n@%p1 tcgen05.wait::ld.sync.aligned;");
    let (kernel, at) = (gpu.kernel(text.as_str(), "k").unwrap(), gpu.zeros::<u32>(1).unwrap());
    // SAFETY: the simulated device checks what its kernels touch.
    let error = unsafe { gpu.launch(&kernel).grid(1).block(1).read_write(&at).submit() }.unwrap_err();
    assert!(format!("{error:#}").contains("line 13"), "{error:#}");
    gpu.synchronize().unwrap();
}

/// What the first load says if the loader answers with this.
fn refused(code: Code, log: &str, load: impl FnOnce(&DeviceRuntime) -> kiln::Error) -> CodeError {
    let fault = PlannedFault::LoadFails { load: 1, code, log: log.into() };
    let machine = machine(FaultPlan::none().on(0, fault));
    let error = load(&runtime(&machine));
    match error.kind() {
        ErrorKind::Code(error) => error.clone(),
        other => panic!("expected an error of the code, got {other}"),
    }
}

#[test]
fn machine_code_for_another_architecture_is_told_with_the_devices_and_what_to_do() {
    let error = refused(Code::NO_BINARY_FOR_GPU, "", |gpu| {
        gpu.source(Source::Cubin(b"\x7fELF for another device")).kernel("k").unwrap_err()
    });
    assert!(matches!(error, CodeError::Architecture { compiled_for: None, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("9.0") && text.contains("compile it for that one"), "{text}");
    assert!(!error.is_compile_error(), "the source may be right");
}

#[test]
fn ptx_for_a_newer_architecture_is_told_apart_from_ptx_that_is_wrong() {
    let newer = COPY.replace("sm_70", "sm_120").replace(".version 7.0", ".version 8.7");
    let error = refused(Code::INVALID_PTX, "SM version is higher", |gpu| {
        gpu.kernel(newer.as_str(), "copy").unwrap_err()
    });
    let text = error.to_string();
    assert!(
        text.contains("sm_120") && text.contains("9.0") && text.contains("SM version is higher"),
        "{text}"
    );

    let fault = PlannedFault::LoadFails { load: 1, code: Code::INVALID_PTX, log: "parsing error".into() };
    let gpu = runtime(&machine(FaultPlan::none().on(0, fault)));
    let error = gpu.kernel(COPY, "copy").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Driver(_)), "{error}");
    assert!(error.to_string().contains("parsing error"), "{error}");
}

#[test]
fn ptx_newer_than_the_driver_is_told_with_both_versions_by_every_route() {
    let newer = COPY.replace(".version 7.0", ".version 9.9");
    let routes: [fn(&DeviceRuntime, &str) -> kiln::Error; 2] = [
        |gpu, text| gpu.kernel(text, "copy").unwrap_err(),
        |gpu, text| gpu.load_kernel(&Image::Ptx(text), "copy", None).unwrap_err(),
    ];
    for route in routes {
        let error =
            refused(Code::UNSUPPORTED_PTX_VERSION, "Unsupported .version 9.9", |gpu| route(gpu, &newer));
        let text = error.to_string();
        for word in ["version 9.9", "CUDA 12.4", "update the driver", "the loader says"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
    }
}

#[test]
fn without_ptx_the_signature_is_what_the_driver_knows() {
    let machine = machine(FaultPlan::none());
    let gpu = runtime(&machine);
    let copy = gpu.load_kernel(&Image::Ptx(COPY), "copy", None).unwrap();
    let parameters = copy.signature().unwrap().parameters();
    let spans: Vec<_> = parameters.iter().map(|parameter| (parameter.offset, parameter.bytes)).collect();
    assert_eq!(spans, [(0, 8), (8, 8)]);
    assert!(parameters.iter().all(|parameter| parameter.kind == ParameterKind::Unknown));
    let (from, to) = (gpu.upload(&[7_u32]).unwrap(), gpu.zeros::<u32>(1).unwrap());
    // SAFETY: refused, for their number and the size of a value; the last touches one element of each.
    let [few, narrow, right] = unsafe {
        [
            gpu.launch(&copy).grid(1).block(1).read(&from).submit(),
            gpu.launch(&copy).grid(1).block(1).read(&from).value(1_u32).submit(),
            gpu.launch(&copy).grid(1).block(1).read(&from).write(&to).submit(),
        ]
    };
    for wrong in [few, narrow] {
        let error = wrong.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Mismatch(_)), "{error}");
    }
    right.unwrap();
    assert_eq!(to.download().unwrap(), [7]);
}
