//! Launches that do not fit their kernel are refused when they are submitted, and the device lives on.

use kiln::DeviceRuntime;
use kiln::sim::{Machine, MachineConfig, PtxEngine};

const KERNELS: &str = "
    .version 8.1
    .target sm_90
    .address_size 64
    .visible .entry sized(.param .u64 out) .reqntid 64 { ret; }
    .visible .entry capped(.param .u64 out) .maxntid 64 { ret; }
    .visible .entry clustered(.param .u64 out) .reqnctapercluster 2 { ret; }
    .visible .entry last(.param .u64 out, .param .align 8 .b8 data[32752]) {
        .reg .b32 %r<2>; .reg .b64 %rd<2>;
        ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [data+32748]; st.global.u32 [%rd1], %r1;
        ret;
    }";

fn runtime() -> DeviceRuntime {
    let machine = Machine::new(MachineConfig::seeded(1).engine(std::sync::Arc::new(PtxEngine::default())));
    DeviceRuntime::from_driver(machine.device(0).unwrap(), kiln::RuntimeConfig::default()).unwrap()
}

#[test]
fn a_shape_that_does_not_fit_is_refused_and_the_device_lives_on() {
    let gpu = runtime();
    let out = gpu.zeros::<u32>(4).unwrap();
    for (name, grid, block, told) in [
        ("sized", 2, 32, "blocks of 64 x 1 x 1 threads"),
        ("sized", 2, 128, "64"),
        ("capped", 2, 65, "64"),
        ("clustered", 3, 32, "cluster"),
    ] {
        let kernel = gpu.kernel(KERNELS, name).unwrap();
        // SAFETY: the kernels touch nothing.
        let refused = unsafe { gpu.launch(&kernel).grid(grid).block(block).read_write(&out).submit() };
        let refused = refused.err().unwrap_or_else(|| panic!("{name} with {block} threads was launched"));
        assert!(!refused.is_sticky() && refused.to_string().contains(told), "{name}: {refused:#}");
    }
    let kernel = gpu.kernel(KERNELS, "sized").unwrap();
    // SAFETY: as above.
    unsafe { gpu.launch(&kernel).grid(2).block(64).read_write(&out).submit() }.unwrap();
    assert_eq!(out.download().unwrap(), [0; 4]);
}

#[test]
fn a_kernel_may_have_as_many_parameters_as_on_cuda() {
    let gpu = runtime();
    let out = gpu.zeros::<u32>(1).unwrap();
    let mut data = vec![0_u8; 32_752];
    data[32_748..].copy_from_slice(&7_u32.to_le_bytes());
    let kernel = gpu.kernel(KERNELS, "last").unwrap();
    // SAFETY: one thread writes one element.
    unsafe { gpu.launch(&kernel).grid(1).block(1).read_write(&out).value_bytes(&data).submit() }.unwrap();
    assert_eq!(out.download().unwrap(), [7]);
    let too_many = KERNELS.replace("32752", "32760");
    let refused = gpu.kernel(too_many.as_str(), "last").unwrap_err();
    assert!(format!("{refused:#}").contains("at most 32764 are allowed"), "{refused:#}");
}
