//! Plain numbers a kernel can load, store and take as arguments.

use crate::memory::memory_view::AccessFault;
use crate::memory::thread_memory_access::MemoryPort;

mod sealed {
    pub trait Sealed {}
}

/// A number with a fixed size, little endian on the device.
pub trait Scalar: Copy + sealed::Sealed {
    /// Its size.
    const BYTES: usize;

    /// The number from its bytes; none if there are too few.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;

    /// Reads it through a port.
    ///
    /// # Errors
    /// The fault, if it cannot be read.
    fn load(port: &mut MemoryPort<'_>, address: u64) -> Result<Self, AccessFault>;

    /// Writes it through a port.
    ///
    /// # Errors
    /// The fault, if it cannot be written.
    fn store(self, port: &mut MemoryPort<'_>, address: u64) -> Result<(), AccessFault>;
}

macro_rules! scalars {
    ($($type:ty as $bits:ty: $load:ident, $store:ident;)*) => {$(
        impl sealed::Sealed for $type {}
        impl Scalar for $type {
            const BYTES: usize = size_of::<$type>();

            fn from_bytes(bytes: &[u8]) -> Option<Self> {
                let bytes = bytes.get(..Self::BYTES)?;
                bytes.try_into().ok().map(Self::from_le_bytes)
            }

            #[inline]
            fn load(port: &mut MemoryPort<'_>, address: u64) -> Result<Self, AccessFault> {
                port.$load(address).map(|bits| Self::from_ne_bytes(bits.to_ne_bytes()))
            }

            #[inline]
            fn store(self, port: &mut MemoryPort<'_>, address: u64) -> Result<(), AccessFault> {
                port.$store(address, <$bits>::from_ne_bytes(self.to_ne_bytes()))
            }
        }
    )*};
}

scalars! {
    u8 as u8: load_u8, store_u8;
    i8 as u8: load_u8, store_u8;
    u16 as u16: load_u16, store_u16;
    i16 as u16: load_u16, store_u16;
    u32 as u32: load_u32, store_u32;
    i32 as u32: load_u32, store_u32;
    f32 as u32: load_u32, store_u32;
    u64 as u64: load_u64, store_u64;
    i64 as u64: load_u64, store_u64;
    f64 as u64: load_u64, store_u64;
}
