//! Arguments that fit a kernel of which nothing is known but its PTX.

use kiln::{DeviceRuntime, GpuRef};
use kiln_ptx::{EntryFacts, PtxParameter, PtxParameterKind, ScalarKind};

use crate::known_launch::KnownArgument;

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

/// Arguments for all parameters of a kernel: those that are known, and the rest invented.
pub(crate) fn arguments(
    gpu: &DeviceRuntime,
    facts: &EntryFacts,
    known: &[KnownArgument],
    seed: u64,
) -> kiln::Result<Vec<Invented>> {
    let known = known.iter().chain(std::iter::repeat(&KnownArgument::Invented));
    let parameters = facts.signature.parameters.iter().zip(known);
    parameters
        .map(|(parameter, known)| match known {
            KnownArgument::Invented => argument(gpu, parameter, seed),
            KnownArgument::Bytes(bytes) => Ok(Invented::Bytes(bytes.clone(), Vec::new())),
            KnownArgument::Fill(number) => Ok(Invented::Array(gpu.upload(&vec![*number; WORDS])?)),
            KnownArgument::Steps(number) => {
                let multiples: Vec<u32> = (0..WORDS as u32).map(|at| at.wrapping_mul(*number)).collect();
                Ok(Invented::Array(gpu.upload(&multiples)?))
            }
        })
        .collect()
}

fn argument(gpu: &DeviceRuntime, parameter: &PtxParameter, seed: u64) -> kiln::Result<Invented> {
    let bytes = usize::try_from(parameter.size_bytes).unwrap_or(0);
    Ok(match parameter.kind {
        PtxParameterKind::Pointer => Invented::Array(array(gpu, seed)?),
        PtxParameterKind::Bytes => {
            let mut value = vec![0; bytes];
            let mut arrays = Vec::new();
            for field in &parameter.pointers {
                let array = array(gpu, seed)?;
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

/// Zeros for seed 0; else numbers below [`SIZE`], which are small as sizes, as indices and as floats.
fn array(gpu: &DeviceRuntime, seed: u64) -> kiln::Result<GpuRef<u32>> {
    if seed == 0 {
        return gpu.zeros(WORDS);
    }
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % SIZE) as u32
    };
    gpu.upload(&(0..WORDS).map(|_| next()).collect::<Vec<_>>())
}
