//! The kernels the laws launch.
//!
//! The set is small and fixed, so that a driver joins by bringing it in a form it can load: [`PTX`] for hardware, host
//! functions of the same names for a simulator. Each touches only what its arguments name:
//!
//! | kernel | arguments | does |
//! |---|---|---|
//! | `fill_index` | out, count: u32 | `out[i] = i` for i < count |
//! | `increment` | data, count: u32 | `data[i] += 1` for i < count |
//! | `axpy` | factor: f32, x, y, count: u32 | `y[i] = factor * x[i] + y[i]` in one rounding |
//! | `copy_words` | from, to, count: u32 | `to[i] = from[i]` |
//! | `visit` | out | each thread, in a grid of any shape, adds 1 to the word of its place in the grid |
//! | `store_value` | out, value: u32 | `out[0] = value` |
//! | `through_shared` | out, value: u32, shared_bytes: u32 | value to the last word of dynamic shared memory, from there to `out[0]` |
//! | `meet` | counters, blocks: u32 | each block adds 1 to `counters[0]`, waits until it is `blocks`, adds 1 to `counters[1]` |
//! | `spin` | clocks: u64 | keeps its stream busy |
//! | `bump_variable` | out | `out[0] = law_variable`, then adds 1 to the module's variable, which starts at 7 |
//! | `fault` | none | writes where nothing is mapped |
//!
//! Words are `u32` or `f32`; `fill_index`, `increment`, `axpy` and `copy_words` are launched with one-dimensional grids.

use kiln_driver::Image;

/// The kernels as PTX for compute capability 7.0 and newer.
pub const PTX: &str = include_str!("kernels.ptx");

/// The name of the module's variable.
pub const VARIABLE: &str = "law_variable";

/// What the module's variable holds when the module is loaded.
pub const VARIABLE_START: u32 = 7;

/// The kernels in a form a driver can load.
#[derive(Clone, Debug)]
pub struct Kernels {
    image: OwnedImage,
    broken: OwnedImage,
    /// Whether the module has its variable and `bump_variable`.
    pub(crate) has_variable: bool,
}

#[derive(Clone, Debug)]
enum OwnedImage {
    Ptx(&'static str),
    HostKernels(String),
}

impl OwnedImage {
    fn image(&self) -> Image<'_> {
        match self {
            Self::Ptx(text) => Image::Ptx(text),
            Self::HostKernels(name) => Image::HostKernels(name),
        }
    }
}

impl Kernels {
    /// [`PTX`], for devices that run it.
    pub fn ptx() -> Self {
        Self {
            image: OwnedImage::Ptx(PTX),
            broken: OwnedImage::Ptx(".version 7.0\n.target sm_70\n.visible .entry broken( { nonsense; }\n"),
            has_variable: true,
        }
    }

    /// Host functions, registered with a simulated device under this name; they come without the variable.
    pub fn host(library: &str) -> Self {
        Self {
            image: OwnedImage::HostKernels(library.into()),
            broken: OwnedImage::HostKernels(format!("{library} that is not registered")),
            has_variable: false,
        }
    }

    /// The image that holds them.
    pub fn image(&self) -> Image<'_> {
        self.image.image()
    }

    /// An image of the same kind that no loader accepts.
    pub fn broken(&self) -> Image<'_> {
        self.broken.image()
    }
}

/// Packed arguments, each aligned to its own size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
}

impl Arguments {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn address(self, address: kiln_driver::DeviceAddress) -> Self {
        self.push(&address.0.to_le_bytes())
    }

    pub(crate) fn u32(self, value: u32) -> Self {
        self.push(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Self {
        self.push(&value.to_le_bytes())
    }

    pub(crate) fn f32(self, value: f32) -> Self {
        self.push(&value.to_le_bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn push(mut self, value: &[u8]) -> Self {
        self.bytes.resize(self.bytes.len().next_multiple_of(value.len()), 0);
        self.bytes.extend_from_slice(value);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_lie_where_ptx_puts_them() {
        let packed = Arguments::new().f32(2.0).u64(3).u32(5);
        let mut expected = vec![0, 0, 0, 64, 0, 0, 0, 0];
        expected.extend([3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0]);
        assert_eq!(packed.bytes(), expected);
    }
}
