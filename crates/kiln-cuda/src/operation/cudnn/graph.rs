//! A graph of operations that is being described: tensors in memory, tensors between operations, scalars, and the operations.

use super::DnnHandle;
use super::descriptor::{Descriptor, DnnResult};
use super::enum_values::{Named, attribute, attribute_type, data_type, descriptor_type};

/// What tensors in memory begin at multiples of, in bytes.
const ALIGNMENT: i64 = 16;

/// A tensor of a graph.
#[derive(Clone, Copy)]
pub(super) struct TensorId(usize);

/// Where a launch finds a scalar.
#[derive(Clone, Copy)]
pub(super) enum ScalarSource {
    /// An argument of the launch.
    Argument(usize),
    Constant(f32),
    Integer(i32),
}

/// A graph that is being described.
pub(super) struct Graph<'h> {
    handle: &'h DnnHandle,
    pub(super) operations: Vec<Descriptor>,
    tensors: Vec<Descriptor>,
    /// What operations refer to.
    others: Vec<Descriptor>,
    /// Scalars with the numbers that launches name them by.
    pub(super) scalars: Vec<(i64, ScalarSource)>,
}

impl<'h> Graph<'h> {
    pub(super) fn new(handle: &'h DnnHandle) -> Self {
        let (operations, tensors, others) = (Vec::new(), Vec::new(), Vec::new());
        Self { handle, operations, tensors, others, scalars: Vec::new() }
    }

    /// A tensor in memory. Launches name the first one 1, the next 2 and so on.
    pub(super) fn in_memory(
        &mut self,
        kind: Named,
        dimensions: [i64; 4],
        strides: [i64; 4],
    ) -> DnnResult<TensorId> {
        let (_, tensor) = self.begin_tensor(kind, dimensions, strides)?;
        self.end_tensor(tensor)
    }

    /// A tensor that one operation hands to others, row after row.
    pub(super) fn between(&mut self, kind: Named, dimensions: [i64; 4]) -> DnnResult<TensorId> {
        let [_, b, c, d] = dimensions;
        let (_, tensor) = self.begin_tensor(kind, dimensions, [b * c * d, c * d, d, 1])?;
        tensor.set_flag(attribute::TENSOR_IS_VIRTUAL, true)?;
        self.end_tensor(tensor)
    }

    /// A number of type `f32`, or an integer of type `i32`, that comes with each launch.
    pub(super) fn scalar(&mut self, source: ScalarSource) -> DnnResult<TensorId> {
        let kind = match source {
            ScalarSource::Integer(_) => data_type::INT32,
            ScalarSource::Argument(_) | ScalarSource::Constant(_) => data_type::FLOAT,
        };
        let (number, tensor) = self.begin_tensor(kind, [1; 4], [1; 4])?;
        tensor.set_flag(attribute::TENSOR_IS_BY_VALUE, true)?;
        self.scalars.push((number, source));
        self.end_tensor(tensor)
    }

    fn begin_tensor(
        &self,
        kind: Named,
        dimensions: [i64; 4],
        strides: [i64; 4],
    ) -> DnnResult<(i64, Descriptor)> {
        let number = self.tensors.len() as i64 + 1;
        let tensor = Descriptor::new(self.handle.api, descriptor_type::TENSOR)?;
        tensor.set_number(attribute::TENSOR_DATA_TYPE, attribute_type::DATA_TYPE, kind.number)?;
        tensor.set_integers(attribute::TENSOR_DIMENSIONS, &dimensions)?;
        tensor.set_integers(attribute::TENSOR_STRIDES, &strides)?;
        tensor.set_integers(attribute::TENSOR_UNIQUE_ID, &[number])?;
        tensor.set_integers(attribute::TENSOR_BYTE_ALIGNMENT, &[ALIGNMENT])?;
        Ok((number, tensor))
    }

    fn end_tensor(&mut self, tensor: Descriptor) -> DnnResult<TensorId> {
        self.tensors.push(tensor.finalize()?);
        Ok(TensorId(self.tensors.len() - 1))
    }

    /// A descriptor that describes an operation, and is not one.
    pub(super) fn describe(&self, kind: Named) -> DnnResult<Descriptor> {
        Descriptor::new(self.handle.api, kind)
    }

    /// Adds an operation: what it is, with the description, and the tensors, each by its attribute.
    pub(super) fn add(
        &mut self,
        kind: Named,
        description: (Named, Descriptor),
        tensors: &[(Named, TensorId)],
        factors: &[(Named, f32)],
    ) -> DnnResult<()> {
        let node = Descriptor::new(self.handle.api, kind)?;
        let (name, description) = (description.0, description.1.finalize()?);
        node.set_descriptor(name, &description)?;
        self.others.push(description);
        for (name, tensor) in tensors {
            if let Some(tensor) = self.tensors.get(tensor.0) {
                node.set_descriptor(*name, tensor)?;
            }
        }
        for (name, factor) in factors {
            node.set_float(*name, *factor)?;
        }
        self.operations.push(node.finalize()?);
        Ok(())
    }

    /// Operations, and what they refer to.
    pub(super) fn into_parts(self) -> (Vec<Descriptor>, Vec<Descriptor>) {
        let mut parts = self.tensors;
        parts.extend(self.others);
        (self.operations, parts)
    }
}
