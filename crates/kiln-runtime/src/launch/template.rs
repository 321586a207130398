//! A launch as data: what a graph keeps of it, so that it can be run again and changed in place.
//!
//! A [`Launch`](super::Launch) borrows its buffers and lives for one call. A template owns what it needs: the kernel, the memory of its
//! buffers and its packed arguments, and it knows where in those each argument lies. Both pass the same checks.

use kiln_driver::{Access, Command, Dim3, Driver, Vouched};

use super::kernel::Kernel;
use super::mismatch::{Given, Mismatch, explain, fits, place};
use super::shape::Shape;
use crate::buffer::{Element, GpuRef, Held};
use crate::error::{Error, Result};
use crate::misuse::Misuse;
use crate::runtime::Inner;

/// A launch as data.
#[derive(Clone)]
pub(crate) struct LaunchTemplate {
    kernel: Kernel,
    shape: Shape,
    arguments: Vec<Argument>,
    packed: Vec<u8>,
}

#[derive(Clone)]
struct Argument {
    offset: usize,
    given: Given,
    /// What a buffer lies in; none for a value and for a buffer of no elements.
    held: Option<Held>,
}

impl LaunchTemplate {
    /// A launch of one block of one thread, without arguments.
    pub(crate) fn new(kernel: &Kernel) -> Self {
        Self { kernel: kernel.clone(), shape: Shape::ONE, arguments: Vec::new(), packed: Vec::new() }
    }

    pub(crate) fn set_grid(&mut self, grid: Dim3) {
        self.shape.grid = grid;
    }

    pub(crate) fn set_block(&mut self, block: Dim3) {
        self.shape.block = block;
    }

    pub(crate) fn set_cluster(&mut self, cluster: Dim3) {
        self.shape.cluster = Some(cluster);
    }

    pub(crate) fn set_shared(&mut self, bytes: u32) {
        self.shape.dynamic_shared_bytes = bytes;
    }

    pub(crate) fn set_cooperative(&mut self) {
        self.shape.cooperative = true;
    }

    /// Adds a value as the next argument.
    pub(crate) fn push_value<T: Element>(&mut self, value: T) -> Result<()> {
        let given = Given::value_of::<T>();
        self.push(bytemuck::bytes_of(&value), align_of::<T>(), given, None)
    }

    /// Adds a buffer as the next argument.
    pub(crate) fn push_buffer<T: Element>(
        &mut self,
        runtime: &Inner,
        buffer: &GpuRef<T>,
        access: Access,
    ) -> Result<()> {
        self.check_buffer(runtime, self.arguments.len(), buffer)?;
        let address = buffer.address().0.to_ne_bytes();
        self.push(&address, size_of::<u64>(), Given::Buffer(access), buffer.held())
    }

    /// Replaces an argument by a value.
    pub(crate) fn replace_value<T: Element>(&mut self, index: usize, value: T) -> Result<()> {
        self.replace(index, bytemuck::bytes_of(&value), Given::value_of::<T>(), None)
    }

    /// Replaces an argument by a buffer.
    pub(crate) fn replace_buffer<T: Element>(
        &mut self,
        runtime: &Inner,
        index: usize,
        buffer: &GpuRef<T>,
        access: Access,
    ) -> Result<()> {
        self.check_buffer(runtime, index, buffer)?;
        let address = buffer.address().0.to_ne_bytes();
        self.replace(index, &address, Given::Buffer(access), buffer.held())
    }

    /// Everything that can be said before the driver has it.
    pub(crate) fn check(&self, runtime: &Inner) -> Result<()> {
        let kernel = || self.kernel.name().to_owned();
        if !self.kernel.belongs_to(runtime) {
            return Err(Mismatch::ForeignKernel { kernel: kernel() }.into());
        }
        if let Some(signature) = self.kernel.signature()
            && signature.parameters().len() != self.arguments.len()
        {
            let (wanted, given) = (signature.parameters().len(), self.arguments.len());
            return Err(Mismatch::Count { kernel: kernel(), wanted, given }.into());
        }
        self.shape.check(&self.kernel).map_err(|wrong| Error::new(*wrong))?;
        self.check_overlap()?;
        if self.shape.cooperative { self.check_residency(&**runtime.driver()) } else { Ok(()) }
    }

    /// The buffers with the bytes that are used of them.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (&Held, Access)> {
        self.arguments.iter().filter_map(|argument| match argument.given {
            Given::Buffer(access) => Some((argument.held.as_ref()?, access)),
            Given::Value { .. } => None,
        })
    }

    /// The command.
    pub(crate) fn command(&self, vouched: Vouched) -> Command<'_> {
        Command::Launch(kiln_driver::Launch {
            function: self.kernel.id(),
            grid: self.shape.grid,
            block: self.shape.block,
            cluster: self.shape.cluster,
            dynamic_shared_bytes: self.shape.dynamic_shared_bytes,
            cooperative: self.shape.cooperative,
            arguments: &self.packed,
            vouched,
        })
    }

    fn push(&mut self, bytes: &[u8], align: usize, given: Given, held: Option<Held>) -> Result<()> {
        let index = self.arguments.len();
        let offset = match self.kernel.signature() {
            None => self.packed.len().next_multiple_of(align.max(1)),
            Some(signature) => match signature.parameters().get(index) {
                Some(parameter) => {
                    self.fit(index, given)?;
                    parameter.offset as usize
                }
                // One argument too many is said when the count is known.
                None => self.packed.len(),
            },
        };
        let end = offset + bytes.len();
        self.packed.resize(self.packed.len().max(end), 0);
        self.packed[offset..end].copy_from_slice(bytes);
        self.arguments.push(Argument { offset, given, held });
        Ok(())
    }

    fn replace(&mut self, index: usize, bytes: &[u8], given: Given, held: Option<Held>) -> Result<()> {
        let count = self.arguments.len();
        let Some(argument) = self.arguments.get(index) else {
            let kernel = self.kernel.name().to_owned();
            return Err(Mismatch::Count { kernel, wanted: count, given: index.saturating_add(1) }.into());
        };
        self.fit(index, given)?;
        let same_size = match (argument.given, given) {
            (Given::Value { bytes: old, .. }, Given::Value { bytes: new, .. }) => old == new,
            (Given::Buffer(_), Given::Buffer(_)) => true,
            (Given::Value { .. }, Given::Buffer(_)) | (Given::Buffer(_), Given::Value { .. }) => false,
        };
        if !same_size {
            return Err(self.unlike(index, argument.given, given));
        }
        let at = argument.offset;
        self.packed[at..at + bytes.len()].copy_from_slice(bytes);
        self.arguments[index] = Argument { offset: at, given, held };
        Ok(())
    }

    /// An argument of a kernel whose parameters nobody knows must stay what it was.
    fn unlike(&self, index: usize, old: Given, given: Given) -> Error {
        let parameter = super::mismatch::ParameterName { index, name: None };
        let kernel = self.kernel.name().to_owned();
        match (old, given) {
            (Given::Value { bytes: old, .. }, Given::Value { bytes: given, .. }) => {
                Mismatch::Size { kernel, parameter, wanted: old as u32, given }.into()
            }
            (Given::Value { .. }, _) => Mismatch::Kind { kernel, parameter, wanted: "a value", given }.into(),
            (Given::Buffer(_), _) => Mismatch::Kind { kernel, parameter, wanted: "a pointer", given }.into(),
        }
    }

    fn check_buffer<T: Element>(&self, runtime: &Inner, index: usize, buffer: &GpuRef<T>) -> Result<()> {
        buffer.check_runtime(runtime).map_err(|error| error.placed(place(&self.kernel, index)))
    }

    fn fit(&self, index: usize, given: Given) -> Result<()> {
        let signature = self.kernel.signature();
        match signature.and_then(|signature| signature.parameters().get(index)) {
            Some(parameter) if !fits(parameter, given) => {
                Err(explain(self.kernel.name(), index, parameter, given).into())
            }
            _ => Ok(()),
        }
    }

    fn check_residency(&self, driver: &dyn Driver) -> Result<()> {
        self.shape.check_residency(&self.kernel, driver)
    }

    /// Refuses two arguments that write the same bytes, as the step of a plain launch does.
    fn check_overlap(&self) -> Result<()> {
        let writes: Vec<(usize, &Held)> = self
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| matches!(argument.given, Given::Buffer(access) if access.writes()))
            .filter_map(|(at, argument)| Some((at, argument.held.as_ref()?)))
            .collect();
        for (place, (first, held)) in writes.iter().enumerate() {
            if let Some((second, _)) = writes[place + 1..].iter().find(|(_, other)| held.overlaps(other)) {
                let (first, second) = (*first as u16, *second as u16);
                let kernel = format!("kernel `{}`", self.kernel.name());
                return Err(Error::new(Misuse::Overlap { first, second }).placed(kernel));
            }
        }
        Ok(())
    }
}
