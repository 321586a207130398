//! Arguments that fit a kernel of which nothing is known but its PTX.

use kiln::{DeviceRuntime, GpuRef};
use kiln_ptx::exec::{TexelFormat, TexelKind, TextureObject};
use kiln_ptx::{EntryFacts, Family, Feature, PtxParameter, PtxParameterKind, ScalarKind};

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
    let needs = |family| facts.requirements.needs(Feature::Family(family));
    let has_textures = needs(Family::Texture) || needs(Family::Surface);
    let parameters = facts.signature.parameters.iter().zip(known);
    parameters
        .map(|(parameter, known)| match known {
            KnownArgument::Invented if has_textures && is_handle(parameter) => texture(gpu, seed),
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

/// Whether a parameter may be the handle of a texture or surface.
fn is_handle(parameter: &PtxParameter) -> bool {
    let is_number = matches!(parameter.ty.kind(), ScalarKind::Float | ScalarKind::Signed);
    parameter.size_bytes == 8 && !is_number && parameter.kind != PtxParameterKind::Pointer
}

/// A texture with four floats in each texel, which is large enough for small launches, and 4 slices or layers.
fn texture(gpu: &DeviceRuntime, seed: u64) -> kiln::Result<Invented> {
    let texels = array(gpu, seed)?;
    let address = texels.access().map_err(kiln::Error::from)?.address.0;
    let format = TexelFormat { kind: TexelKind::F32, channels: 4 };
    let object = TextureObject { layers: 4, ..TextureObject::image(address, format, [512, 32, 4]) };
    let words = object
        .record()
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect::<Vec<_>>();
    let object = gpu.upload(&words)?;
    let handle = object.access().map_err(kiln::Error::from)?.address.0;
    Ok(Invented::Bytes(handle.to_le_bytes().to_vec(), vec![texels, object]))
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
