//! Tensor maps for kernels with tensor copies (TMA).

use std::fmt;

use kiln_driver::{Error as DriverError, TENSOR_MAP_BYTES, TensorMapBoxes, TensorMapRequest};
pub use kiln_ptx::exec::{
    TensorBoxes, TensorColumns, TensorElement, TensorFill, TensorInterleave, TensorMap, TensorMapError,
    TensorMapField, TensorMapRule, TensorSwizzle,
};

use crate::buffer::{BlockRange, Element, GpuRef};
use crate::error::Result;
use crate::runtime::DeviceRuntime;

const CALL: &str = "tensor_map";

/// A tensor map of a buffer, as its device reads it. It keeps the memory of the buffer.
#[derive(Clone)]
pub struct DeviceTensorMap {
    bytes: [u8; TENSOR_MAP_BYTES],
    /// The bytes of the tensor.
    held: BlockRange,
}

impl DeviceTensorMap {
    /// The bytes, for a kernel that reads its map from constant or global memory. Such a launch names the buffer with
    /// [`also_read`](crate::Launch::also_read) or [`also_write`](crate::Launch::also_write); the bytes alone do not keep its memory.
    pub fn bytes(&self) -> &[u8; TENSOR_MAP_BYTES] {
        &self.bytes
    }

    pub(crate) fn held(&self) -> &BlockRange {
        &self.held
    }
}

impl fmt::Debug for DeviceTensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (block, range) = (self.held.block(), self.held.range());
        f.debug_struct("DeviceTensorMap")
            .field("address", &block.address(range.start))
            .field("tensor_bytes", &self.held.bytes())
            .finish_non_exhaustive()
    }
}

impl DeviceRuntime {
    /// The tensor map of a buffer, or of a part of it, as kernels of this device read it: on CUDA the driver writes it (`cuTensorMapEncodeTiled`,
    /// `cuTensorMapEncodeIm2col`). A launch takes it with [`read_map`](crate::Launch::read_map) or [`write_map`](crate::Launch::write_map).
    ///
    /// ```
    /// use kiln_runtime::DeviceRuntime;
    /// use kiln_runtime::tensor::{TensorElement, TensorMap, TensorSwizzle};
    ///
    /// let gpu = DeviceRuntime::simulated(1)?;
    /// let matrix = gpu.zeros::<f32>(256 * 256)?;
    /// let tiles = TensorMap::tiled(matrix.address().0, TensorElement::F32, &[256, 256], &[32, 32]);
    /// let map = gpu.tensor_map(&matrix, &tiles.with_swizzle(TensorSwizzle::B128))?;
    /// assert_eq!(map.bytes().len(), 128);
    /// # Ok::<(), kiln_runtime::Error>(())
    /// ```
    ///
    /// # Errors
    /// A description that CUDA does not allow, with the field and the rule ([`TensorMap::check`] gives them as values); a tensor that is not inside of the
    /// buffer; a buffer of another runtime; a device without tensor copies.
    pub fn tensor_map<V: Element>(&self, buffer: &GpuRef<V>, map: &TensorMap) -> Result<DeviceTensorMap> {
        buffer.check_runtime(self.inner())?;
        map.check().map_err(|error| {
            DriverError::invalid(CALL, error.to_string(), "describe the tensor as CUDA asks")
        })?;
        let held = tensor_in(buffer, map)?;
        let boxes = match &map.boxes {
            TensorBoxes::Tile(boxes) => TensorMapBoxes::Tile(boxes),
            TensorBoxes::Im2col(columns) => TensorMapBoxes::Im2col {
                lower_corner: &columns.lower_corner,
                upper_corner: &columns.upper_corner,
                channels: columns.channels,
                pixels: columns.pixels,
            },
        };
        let request = TensorMapRequest {
            address: map.address,
            element: map.element.driver_code(),
            dimensions: &map.dimensions,
            strides: &map.strides,
            element_strides: &map.element_strides,
            boxes,
            interleave: map.interleave as u32,
            swizzle: map.swizzle as u32,
            fill: map.fill as u32,
        };
        Ok(DeviceTensorMap { bytes: self.driver().tensor_map(&request)?, held })
    }
}

/// The bytes of a tensor, which must be inside of the buffer.
fn tensor_in<V: Element>(buffer: &GpuRef<V>, map: &TensorMap) -> Result<BlockRange> {
    let (start, bytes) = (buffer.address().0, map.tensor_bytes());
    let offset = map.address.checked_sub(start);
    let end = offset.and_then(|offset| offset.checked_add(bytes)).filter(|end| *end <= buffer.bytes());
    let range = buffer.byte_range();
    let held = offset.zip(end).and_then(|(offset, end)| {
        BlockRange::of(buffer.shared_block(), range.start + offset..range.start + end)
    });
    held.ok_or_else(|| {
        let what = format!(
            "a tensor of {bytes} bytes at {:#x}, in a buffer of {} bytes at {start:#x}",
            map.address,
            buffer.bytes()
        );
        DriverError::invalid(CALL, what, "describe a tensor that is inside of the buffer").into()
    })
}
