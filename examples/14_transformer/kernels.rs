//! The kernels of the model: programs of kiln, one in each file of `kernels`. They need no compiler, and no `unsafe` to run.

use kiln::program::{Backend, Parameters, Program, ProgramValue, Read, ReadWrite, Typed, Write};
use kiln::{DeviceRuntime, Error, Result};

/// The kernels with the types of their parameters: buffers and scalars, each in the order of the program.
#[allow(clippy::type_complexity, reason = "the types are the parameter lists of the programs")]
pub struct Kernels {
    pub embed: Typed<(Read<u32>, Read<u32>, Read<f32>, Read<f32>, Write<f32>, ProgramValue<u64>)>,
    pub rms_norm: Typed<(Read<f32>, Read<f32>, Write<f32>, Write<f32>)>,
    pub rms_norm_backward: Typed<(Read<f32>, Read<f32>, Read<f32>, Read<f32>, ReadWrite<f32>, Write<f32>)>,
    pub causal_softmax:
        Typed<(ReadWrite<f32>, Read<u32>, ProgramValue<u64>, ProgramValue<u64>, ProgramValue<f32>)>,
    pub softmax_backward: Typed<(Read<f32>, ReadWrite<f32>, ProgramValue<u64>, ProgramValue<f32>)>,
    pub gelu: Typed<(Read<f32>, Write<f32>)>,
    pub gelu_backward: Typed<(Read<f32>, ReadWrite<f32>)>,
    pub cross_entropy: Typed<(ReadWrite<f32>, Read<u32>, Write<f32>, ProgramValue<u64>)>,
    pub one_hot: Typed<(Read<u32>, Write<f32>, ProgramValue<u64>)>,
    pub adamw: Typed<(
        ReadWrite<f32>,
        Read<f32>,
        ReadWrite<f32>,
        ReadWrite<f32>,
        ProgramValue<f32>,
        ProgramValue<f32>,
        ProgramValue<f32>,
        ProgramValue<f32>,
    )>,
    pub store_row: Typed<(Read<f32>, Read<u32>, ReadWrite<f32>)>,
    pub take_token: Typed<(Read<u64>, ReadWrite<u32>, ReadWrite<u32>, ProgramValue<u32>)>,
}

impl Kernels {
    /// Compiles and loads all of them.
    pub fn load(gpu: &DeviceRuntime) -> Result<Self> {
        let backend = Backend::over(gpu.clone());
        Ok(Self {
            embed: compile(&backend, include_str!("kernels/embed.kir"))?,
            rms_norm: compile(&backend, include_str!("kernels/rms_norm.kir"))?,
            rms_norm_backward: compile(&backend, include_str!("kernels/rms_norm_backward.kir"))?,
            causal_softmax: compile(&backend, include_str!("kernels/causal_softmax.kir"))?,
            softmax_backward: compile(&backend, include_str!("kernels/softmax_backward.kir"))?,
            gelu: compile(&backend, include_str!("kernels/gelu.kir"))?,
            gelu_backward: compile(&backend, include_str!("kernels/gelu_backward.kir"))?,
            cross_entropy: compile(&backend, include_str!("kernels/cross_entropy.kir"))?,
            one_hot: compile(&backend, include_str!("kernels/one_hot.kir"))?,
            adamw: compile(&backend, include_str!("kernels/adamw.kir"))?,
            store_row: compile(&backend, include_str!("kernels/store_row.kir"))?,
            take_token: compile(&backend, include_str!("kernels/take_token.kir"))?,
        })
    }
}

/// Parses, verifies and loads one program, and checks that it has these parameters.
fn compile<P: Parameters>(backend: &Backend, text: &str) -> Result<Typed<P>> {
    backend.compile_typed(&Program::parse(text).map_err(Error::other)?)
}
