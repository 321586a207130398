//! A launch that owns what it needs, so that a graph can run it again and change it in place: the kernel, the memory of its buffers, its
//! packed arguments, and where in those each argument lies. A [`Launch`](super::Launch) makes it; both pass the same checks.

use std::sync::Arc;

use kiln_driver::{Access, Command, DeclaredSpan, Dim3, Vouched};
use kiln_trace::KnownName;

use super::check;
use super::kernel::{Kernel, place};
use super::shape::Shape;
use crate::buffer::{BlockRange, Element, GpuRef};
use crate::error::{Error, Misuse, Result};
use crate::runtime::Inner;
use crate::signature::{Given, Mismatch, ParameterName, explain, fits};
use crate::tensor::DeviceTensorMap;

/// A launch that owns what it needs.
#[derive(Clone)]
pub(crate) struct LaunchTemplate {
    kernel: Kernel,
    shape: Shape,
    arguments: Vec<TemplateArgument>,
    /// Buffers that are no arguments.
    beside: Vec<(BlockRange, Access)>,
    packed: Vec<u8>,
    /// What it may touch; none where the device does not look at it.
    declared: Option<Vec<DeclaredSpan>>,
}

/// An argument of a template.
#[derive(Clone)]
pub(crate) struct TemplateArgument {
    /// Where it lies in the packed arguments.
    pub(super) offset: usize,
    pub(super) given: Given,
    /// The bytes of a buffer, or of the tensor of a map; none for a value and for a buffer of no elements.
    pub(super) held: Option<BlockRange>,
}

impl LaunchTemplate {
    /// The name of its kernel as recordings have it.
    pub(crate) fn recorded_name(&self) -> KnownName {
        self.kernel.recorded_name()
    }

    pub(super) fn new(
        kernel: &Kernel,
        shape: Shape,
        arguments: Vec<TemplateArgument>,
        beside: Vec<(BlockRange, Access)>,
        packed: &[u8],
    ) -> Self {
        let (kernel, packed) = (kernel.clone(), packed.to_vec());
        let mut template = Self { kernel, shape, arguments, beside, packed, declared: None };
        template.declare();
        template
    }

    /// Works out what it may touch.
    fn declare(&mut self) {
        if !self.kernel.is_checked() {
            return;
        }
        let span = |held: &BlockRange, access, parameter| DeclaredSpan {
            address: held.block().address(held.range().start),
            bytes: held.bytes(),
            access,
            parameter,
        };
        let arguments = self.arguments.iter().enumerate().filter_map(|(index, argument)| {
            let access = argument.given.access()?;
            Some(span(argument.held.as_ref()?, access, u16::try_from(index).ok()))
        });
        let beside = self.beside.iter().map(|(held, access)| span(held, *access, None));
        self.declared = Some(arguments.chain(beside).collect());
    }

    pub(crate) fn set_grid(&mut self, grid: Dim3) {
        self.shape.set_grid(grid);
    }

    pub(crate) fn set_block(&mut self, block: Dim3) {
        self.shape.set_block(block);
    }

    pub(crate) fn set_threads(&mut self, count: u64) {
        self.shape.set_threads(count, &self.kernel);
    }

    pub(crate) fn set_shared(&mut self, bytes: u32) {
        self.shape.dynamic_shared_bytes = bytes;
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

    /// Replaces an argument by a tensor map.
    pub(crate) fn replace_map(
        &mut self,
        runtime: &Inner,
        index: usize,
        map: &DeviceTensorMap,
        access: Access,
    ) -> Result<()> {
        let held = map.held();
        let usable = held.block().check_runtime(runtime);
        usable.map_err(|error| error.placed(place(&self.kernel, index)))?;
        self.replace(index, map.bytes(), Given::TensorMap(access), Some(held.clone()))
    }

    /// Checks everything before the driver has it.
    pub(crate) fn check(&self, runtime: &Inner) -> Result<()> {
        check::launch(runtime, &self.kernel, self.arguments.len(), &self.shape)?;
        self.check_overlap()
    }

    /// The buffers with the bytes that are used of them, and the variables of the kernel's module that were asked for.
    pub(crate) fn uses(&self) -> impl Iterator<Item = (&BlockRange, Access)> {
        let variables = self.kernel.variables().filter(|variable| {
            !self.buffers().any(|(held, _)| Arc::ptr_eq(held.block(), variable.held.block()))
        });
        self.buffers().chain(variables.map(|variable| (&variable.held, variable.access)))
    }

    fn buffers(&self) -> impl Iterator<Item = (&BlockRange, Access)> {
        let arguments = self
            .arguments
            .iter()
            .filter_map(|argument| Some((argument.held.as_ref()?, argument.given.access()?)));
        arguments.chain(self.beside.iter().map(|(held, access)| (held, *access)))
    }

    /// The command.
    pub(crate) fn command(&self, vouched: Vouched) -> Command<'_> {
        command(&self.kernel, &self.shape, &self.packed, self.declared.as_deref(), vouched)
    }

    fn replace(&mut self, index: usize, bytes: &[u8], given: Given, held: Option<BlockRange>) -> Result<()> {
        let count = self.arguments.len();
        let Some(argument) = self.arguments.get(index) else {
            let kernel = self.kernel.name().to_owned();
            return Err(Mismatch::Count { kernel, wanted: count, given: index.saturating_add(1) }.into());
        };
        self.fit(index, given)?;
        let same_size = match (argument.given, given) {
            (Given::Value { bytes: old, .. }, Given::Value { bytes: new, .. }) => old == new,
            (Given::Buffer(_), Given::Buffer(_))
            | (Given::TensorMap(_), Given::TensorMap(_))
            | (Given::Null, Given::Null) => true,
            (Given::Value { .. } | Given::Buffer(_) | Given::TensorMap(_) | Given::Null, _) => false,
        };
        if !same_size {
            return Err(self.unlike(index, argument.given, given));
        }
        let at = argument.offset;
        self.packed[at..at + bytes.len()].copy_from_slice(bytes);
        self.arguments[index] = TemplateArgument { offset: at, given, held };
        self.declare();
        Ok(())
    }

    /// An argument of a kernel whose parameters are not known must keep its kind and size.
    fn unlike(&self, index: usize, old: Given, given: Given) -> Error {
        let parameter = ParameterName { index, name: None };
        let kernel = self.kernel.name().to_owned();
        match (old, given) {
            (Given::Value { bytes: old, .. }, Given::Value { bytes: given, .. }) => {
                Mismatch::Size { kernel, parameter, wanted: old as u32, given }.into()
            }
            (Given::Value { .. }, _) => Mismatch::Kind { kernel, parameter, wanted: "a value", given }.into(),
            (Given::TensorMap(_), _) => Mismatch::NoMap { kernel, parameter, given }.into(),
            (Given::Buffer(_) | Given::Null, _) => {
                Mismatch::Kind { kernel, parameter, wanted: "a pointer", given }.into()
            }
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

    /// Refuses two arguments that write the same bytes, as the step of a plain launch does.
    pub(super) fn check_overlap(&self) -> Result<()> {
        let arguments = self
            .arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| argument.given.access().is_some_and(Access::writes))
            .filter_map(|(at, argument)| Some((at as u16, argument.held.as_ref()?)));
        let beside = self.beside.iter().filter(|(_, access)| access.writes());
        let beside = beside.map(|(held, _)| (Misuse::BESIDE, held));
        let mut writes: Vec<(u16, &BlockRange)> = arguments.chain(beside).collect();
        // By block and start, so that bytes that are written twice are neighbours.
        writes.sort_by_key(|(_, held)| (Arc::as_ptr(held.block()).addr(), held.range().start));
        for pair in writes.windows(2) {
            if let [(first, held), (second, other)] = pair
                && held.overlaps(other)
            {
                let (first, second) = (*first.min(second), *first.max(second));
                let kernel = format!("kernel `{}`", self.kernel.name());
                return Err(Error::new(Misuse::Overlap { first, second }).placed(kernel));
            }
        }
        Ok(())
    }
}

/// A launch as the driver takes it.
#[inline]
pub(super) fn command<'a>(
    kernel: &Kernel,
    shape: &Shape,
    arguments: &'a [u8],
    declared: Option<&'a [DeclaredSpan]>,
    vouched: Vouched,
) -> Command<'a> {
    Command::Launch(kiln_driver::LaunchCommand {
        function: kernel.id(),
        grid: shape.grid,
        block: shape.block,
        cluster: shape.cluster,
        dynamic_shared_bytes: shape.dynamic_shared_bytes,
        cooperative: shape.cooperative,
        arguments,
        declared,
        vouched,
    })
}
