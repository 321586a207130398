//! Kernels of these tests, as host functions of the simulated device.

use kiln::{
    DeviceRuntime, Kernel,
    launch::{Effect, Number, Parameter, ParameterKind, Signature},
};
use kiln_driver::{Access, Image};
use kiln_sim::{HostKernel, KernelLibrary};

pub(crate) const LIBRARY: &str = "order tests";

/// `mix(to, from, n, k)`: `to[i] = to[i] * k + from[i]`; `join(to, a, b, n)`: `to[i] = a[i] ^ rotl(b[i], 1)`.
pub(crate) fn library() -> KernelLibrary {
    let mix = HostKernel::new("mix")
        .pointer(Access::ReadWrite)
        .pointer(Access::Read)
        .value::<u32>()
        .value::<u32>()
        .body(|launch| {
            let (to, from) = (launch.address(0)?, launch.address(1)?);
            let (n, k) = (launch.value::<u32>(2)?, launch.value::<u32>(3)?);
            let mut port = launch.port();
            for at in 0..u64::from(n) {
                let (old, new) = (port.load::<u32>(to + 4 * at)?, port.load::<u32>(from + 4 * at)?);
                port.store(to + 4 * at, mixed(old, new, k))?;
            }
            Ok(())
        });
    let join = HostKernel::new("join")
        .pointer(Access::Write)
        .pointer(Access::Read)
        .pointer(Access::Read)
        .value::<u32>()
        .body(|launch| {
            let (to, a, b) = (launch.address(0)?, launch.address(1)?, launch.address(2)?);
            let mut port = launch.port();
            for at in 0..u64::from(launch.value::<u32>(3)?) {
                let (a, b) = (port.load::<u32>(a + 4 * at)?, port.load::<u32>(b + 4 * at)?);
                port.store(to + 4 * at, joined(a, b))?;
            }
            Ok(())
        });
    KernelLibrary::new(LIBRARY).kernel(mix).kernel(join)
}

pub(crate) fn mixed(old: u32, new: u32, k: u32) -> u32 {
    old.wrapping_mul(k).wrapping_add(new)
}

pub(crate) fn joined(a: u32, b: u32) -> u32 {
    a ^ b.rotate_left(1)
}

#[allow(dead_code, reason = "not every test launches both")]
pub(crate) struct Kernels {
    pub(crate) mix: Kernel,
    pub(crate) join: Kernel,
}

impl Kernels {
    pub(crate) fn load(runtime: &DeviceRuntime) -> Self {
        let image = Image::HostKernels(LIBRARY);
        let pointer = |at: u32, effect| parameter(at, 8, ParameterKind::Pointer(effect), Number::Unknown);
        let value = |at: u32| parameter(at, 4, ParameterKind::Value, Number::Whole);
        let mix = vec![pointer(0, Effect::ReadsAndWrites), pointer(8, Effect::Reads), value(16), value(20)];
        let join = vec![
            pointer(0, Effect::Writes),
            pointer(8, Effect::Reads),
            pointer(16, Effect::Reads),
            value(24),
        ];
        Self {
            mix: runtime.load_kernel(&image, "mix", Some(Signature::new(mix))).unwrap(),
            join: runtime.load_kernel(&image, "join", Some(Signature::new(join))).unwrap(),
        }
    }
}

fn parameter(offset: u32, bytes: u32, kind: ParameterKind, number: Number) -> Parameter {
    Parameter { name: None, offset, bytes, kind, number }
}
