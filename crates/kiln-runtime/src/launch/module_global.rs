//! Module variables as buffers.

use kiln_driver::Refusal;

use super::module::Module;
use super::variables::ModuleVariables;
use crate::buffer::{Element, GpuRef};
use crate::error::{CodeError, Error, Result, nearest};
use crate::runtime::Block;

impl Module {
    /// A `__device__` or `__constant__` variable by its name, as a buffer: it is read and written by copies and fills, can be passed to
    /// kernels, and keeps the module loaded.
    ///
    /// Its uses are ordered as those of any buffer. Every launch of a kernel of the module counts as a use of the variables that were asked for: a
    /// read of `__constant__` memory, a read and a write of `__device__` memory. A graph knows those that were asked for before it was recorded.
    ///
    /// ```
    /// use kiln::DeviceRuntime;
    ///
    /// const SCALED: &str = "
    ///     .version 7.0
    ///     .target sm_70
    ///     .address_size 64
    ///     .visible .const .align 4 .f32 factor = 0f3F800000;
    ///     .visible .entry scaled(.param .u64 x) {
    ///         .reg .f32 %f<3>; .reg .b64 %rd<1>;
    ///         ld.param.u64 %rd0, [x];
    ///         ld.const.f32 %f0, [factor];
    ///         ld.global.f32 %f1, [%rd0];
    ///         mul.f32 %f2, %f0, %f1;
    ///         st.global.f32 [%rd0], %f2;
    ///         ret;
    ///     }";
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let scaled = gpu.kernel(SCALED, "scaled")?;
    /// let factor = scaled.module().global::<f32>("factor")?;
    /// assert_eq!(factor.download()?, [1.0]);
    /// factor.upload(&[3.0])?;
    /// let x = gpu.upload(&[2.0_f32])?;
    /// // SAFETY: the kernel touches one element.
    /// unsafe { gpu.launch(&scaled).threads(1).read_write(&x).submit()? };
    /// assert_eq!(x.download()?, [6.0]);
    /// # Ok::<(), kiln::Error>(())
    /// ```
    ///
    /// # Errors
    /// No variable of that name, with those that are named most like it; bytes that are no whole number of elements; a float where the variable is
    /// an integer, or the other way round; a runtime that is gone.
    pub fn global<T: Element>(&self, name: &str) -> Result<GpuRef<T>> {
        let runtime = self.runtime()?;
        runtime.check_ready()?;
        let Some(variables) = self.variables() else { return Err(unknown(name, None, &[])) };
        if let Some(held) = variables.find(name, &runtime) {
            variables.check::<T>(name, held.bytes())?;
            return Ok(GpuRef::of_whole(held));
        }
        let memory = runtime.driver().global(self.id(), name);
        let memory = memory.map_err(|error| match error.refusal() {
            Some(Refusal::NotFound { known, .. }) => unknown(name, Some(variables), known),
            _ => error.into(),
        })?;
        variables.check::<T>(name, memory.bytes)?;
        let block = Block::variable(&runtime, memory, self.kept_loaded())?;
        Ok(GpuRef::of_whole(&variables.add(name, block, &runtime)))
    }
}

/// There is no such variable; others may have been meant.
fn unknown(name: &str, variables: Option<&ModuleVariables>, known: &[String]) -> Error {
    let declared = variables.into_iter().flat_map(ModuleVariables::names);
    let candidates = known.iter().map(String::as_str).chain(declared);
    CodeError::UnknownVariable { name: name.to_owned(), nearest: nearest(name, candidates) }.into()
}
