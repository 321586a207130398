//! Machine code by itself on a GPU, and code that this GPU or its driver cannot take.

use kiln::probe::TestGate;
use kiln::{
    DeviceRuntime,
    code::{CodeError, Source},
    error::ErrorKind,
    launch::{Mismatch, ParameterKind},
};
use kiln_cuda::nvrtc::{Architecture, CompileOptions, CompileTarget, CudaSource, Nvrtc};
use kiln_driver::DeviceKind;

const ADD: &str = r#"
extern "C" __global__ void add(unsigned* x, unsigned value, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += value;
}
"#;

/// PTX for any device, with its version and architecture left open.
fn ptx(version: &str, target: &str) -> String {
    format!(".version {version}\n.target {target}\n.address_size 64\n.visible .entry nothing() {{ ret; }}\n")
}

/// The GPU, or why the test is left out.
fn gpu(test: &str) -> Option<&'static DeviceRuntime> {
    match kiln::probe::gpu_for_test(test).unwrap() {
        TestGate::Skipped(absence) => println!("skipped: {absence}"),
        TestGate::Ready(gpu) if gpu.info().kind == DeviceKind::Simulated => {
            println!("skipped: the policy asks for a simulated device");
        }
        TestGate::Ready(gpu) => return Some(gpu),
    }
    None
}

fn refused(gpu: &DeviceRuntime, source: Source<'_>, name: &str) -> CodeError {
    match gpu.kernel(source, name).unwrap_err().kind() {
        ErrorKind::Code(error) => error.clone(),
        other => panic!("expected an error of the code, got {other}"),
    }
}

#[test]
fn machine_code_runs_with_the_signature_the_driver_knows_and_not_on_another_architecture() {
    const NAME: &str =
        "machine_code_runs_with_the_signature_the_driver_knows_and_not_on_another_architecture";
    let Some(gpu) = gpu(NAME) else { return };
    let Ok(nvrtc) = Nvrtc::load() else { return println!("skipped: NVRTC is missing") };
    let compiled = |target| {
        let options = CompileOptions::new(target);
        nvrtc.compile(&CudaSource::new("add.cu", ADD), &options).unwrap().cubin.unwrap()
    };
    let own = nvrtc.target_for(gpu.info().capability).unwrap().architecture();
    let cubin = compiled(CompileTarget::Cubin(own));
    let add = gpu.kernel(Source::Cubin(&cubin), "add").unwrap();
    let parameters = add.signature().expect("the driver tells sizes and offsets").parameters();
    let spans: Vec<_> = parameters.iter().map(|parameter| (parameter.offset, parameter.bytes)).collect();
    assert_eq!(spans, [(0, 8), (8, 4), (12, 4)]);
    // Eight bytes may be an address or a number; four are no address.
    let kinds: Vec<_> = parameters.iter().map(|parameter| parameter.kind).collect();
    assert_eq!(kinds, [ParameterKind::Unknown, ParameterKind::Value, ParameterKind::Value]);
    let x = gpu.upload(&[1_u32; 100]).unwrap();
    // SAFETY: refused for the size of a value, and launched with a length below which the kernel stays.
    let (wrong, right) = unsafe {
        let wrong = gpu.launch(&add).grid(1).block(128).read_write(&x).value(1_u64).value(100_u32).submit();
        (wrong, gpu.launch(&add).grid(1).block(128).read_write(&x).value(41_u32).value(100_u32).submit())
    };
    assert!(matches!(wrong.unwrap_err().kind(), ErrorKind::Mismatch(Mismatch::Size { .. })));
    right.unwrap();
    assert_eq!(x.download().unwrap(), [42; 100]);

    let other = [80, 120].map(Architecture::new).into_iter().find(|other| *other != own).unwrap();
    let foreign = compiled(CompileTarget::Cubin(other));
    let error = refused(gpu, Source::Cubin(&foreign), "add");
    assert!(matches!(error, CodeError::Architecture { .. }), "{error:?}");
    println!("{error}");
    assert_eq!(x.download().unwrap(), [42; 100], "the device is none the worse");
}

#[test]
fn ptx_for_a_newer_device_or_a_newer_driver_is_told_as_that() {
    let Some(gpu) = gpu("ptx_for_a_newer_device_or_a_newer_driver_is_told_as_that") else { return };
    assert!(gpu.kernel(ptx("7.0", "sm_70").as_str(), "nothing").is_ok());
    let error = refused(gpu, Source::Ptx(&ptx("99.9", "sm_70")), "nothing");
    assert!(matches!(error, CodeError::PtxTooNew { ptx: Some(_), .. }), "{error:?}");
    println!("{error}");
    if gpu.info().capability.major < 12 {
        let error = refused(gpu, Source::Ptx(&ptx("8.7", "sm_120")), "nothing");
        assert!(
            matches!(&error, CodeError::Architecture { compiled_for: Some(target), .. } if target == "sm_120"),
            "{error:?}"
        );
        println!("{error}");
    }
}
