//! Tensor maps as arguments of a launch.

use kiln_driver::Access;

use super::builder::Launch;
use crate::buffer::BufferBytes;
use crate::signature::Given;
use crate::tensor::{DeviceTensorMap, TensorMap};

impl<'a, T> Launch<'a, T> {
    /// The next argument: a tensor map of a buffer the kernel reads, by value (`const __grid_constant__ CUtensorMap`). The buffer takes part in
    /// the order as one that is given with [`read`](Self::read), and the kernel may touch the bytes of the tensor.
    pub fn read_map(&mut self, map: &'a DeviceTensorMap) -> &mut Self {
        self.tensor_map(map, Access::Read)
    }

    /// The next argument: a tensor map of a buffer the kernel writes, or reads and writes. What the kernel does not write stays as it is.
    pub fn write_map(&mut self, map: &'a DeviceTensorMap) -> &mut Self {
        self.tensor_map(map, Access::ReadWrite)
    }

    #[inline(never)]
    fn tensor_map(&mut self, map: &'a DeviceTensorMap, access: Access) -> &mut Self {
        let part = BufferBytes::held_by(map.held());
        if !part.block().is_usable(self.runtime) && !self.admit(part.block()) {
            return self;
        }
        self.take_home(part.block(), access);
        let index = self.given;
        self.uses.push(part.used(access, index as u16));
        self.put(map.bytes(), TensorMap::ALIGN as usize, Given::TensorMap(access));
        if let Some(kept) = &mut self.kept {
            kept.declare(&part, access, Some(index));
            if let Some(argument) = kept.arguments.as_mut().and_then(|arguments| arguments.last_mut()) {
                argument.held = part.held();
            }
        }
        self
    }
}
