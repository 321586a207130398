//! Arguments that fit a kernel of which nothing is known but its PTX.

use kiln::{DeviceRuntime, GpuRef};
use kiln_ptx::{EntryFacts, PtxParameter, PtxParameterKind, ScalarKind};

/// Elements behind a pointer: more than small launches with small sizes should reach.
const WORDS: usize = 1 << 18;
/// What an integer parameter holds. Most of them are a number of elements.
const SIZE: u64 = 64;

/// One argument.
pub(crate) enum Invented {
    Array(GpuRef<u32>),
    /// A value, or a struct with the arrays whose addresses lie in it.
    Bytes(Vec<u8>, #[allow(dead_code, reason = "they are kept alive")] Vec<GpuRef<u32>>),
}

/// Arguments for all parameters of a kernel.
pub(crate) fn arguments(gpu: &DeviceRuntime, facts: &EntryFacts) -> kiln::Result<Vec<Invented>> {
    facts.signature.parameters.iter().map(|parameter| argument(gpu, parameter)).collect()
}

fn argument(gpu: &DeviceRuntime, parameter: &PtxParameter) -> kiln::Result<Invented> {
    let bytes = usize::try_from(parameter.size_bytes).unwrap_or(0);
    Ok(match parameter.kind {
        PtxParameterKind::Pointer => Invented::Array(gpu.zeros(WORDS)?),
        PtxParameterKind::Bytes => {
            let mut value = vec![0; bytes];
            let mut arrays = Vec::new();
            for field in &parameter.pointers {
                let array = gpu.zeros(WORDS)?;
                let address = array.access().map_err(kiln::Error::from)?.address.0;
                let place = value.iter_mut().skip(field.offset as usize);
                place.zip(address.to_le_bytes()).for_each(|(byte, of_address)| *byte = of_address);
                arrays.push(array);
            }
            Invented::Bytes(value, arrays)
        }
        _ => {
            let number = match (parameter.ty.kind(), bytes) {
                (ScalarKind::Float, 4) => u64::from(1.0_f32.to_bits()),
                (ScalarKind::Float, 8) => 1.0_f64.to_bits(),
                _ => SIZE,
            };
            let mut value = number.to_le_bytes().to_vec();
            value.resize(bytes, 0);
            Invented::Bytes(value, Vec::new())
        }
    })
}
