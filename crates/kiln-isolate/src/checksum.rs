//! Checksums of device memory, made on the device.
//!
//! A block that is written once and then only read can be verified after a fault: a foreign kernel may have written outside of its buffers, and
//! only the contents show that it did. So the memory is summed after its last write and again after a takeover. There is one sum for each
//! chunk, which tells where the difference is, and the kernel runs at the speed of the memory.
//!
//! Each word of eight bytes is added to a key made from its index, mixed by a bijection, and the results are summed. Two memories that differ in
//! one word never have the same sum; others that differ have the same sum with probability 2^-64.

use kiln_driver::{
    Command, DeviceAddress, DevicePlace, Driver, DriverExt, Error, FunctionId, Image, LaunchCommand,
    ModuleId, Result, StreamId, Submission, Vouched,
};

const KEY: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 0xD6E8_FEB8_6659_FD93;

/// The kernel that sums memory, loaded on a device.
///
/// The sums are the same on every device and on the host ([`Checksum::of`]):
///
/// ```
/// use kiln_isolate::Checksum;
///
/// let mut bytes = vec![7; 3 << 20];
/// let sums = Checksum::of(&bytes);
/// assert_eq!(sums.len() as u64, Checksum::chunks(bytes.len() as u64));
/// bytes[5 << 18] ^= 1;
/// assert_eq!(Checksum::of(&bytes)[1], sums[1]);
/// assert_ne!(Checksum::of(&bytes)[0], sums[0]);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checksum {
    module: ModuleId,
    function: FunctionId,
}

/// Memory to sum, and where the sums go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChecksumRequest {
    /// The first byte, at a multiple of [`Checksum::ALIGNMENT_BYTES`].
    pub address: DeviceAddress,
    /// How many bytes.
    pub bytes: u64,
    /// Memory for [`Checksum::chunks`] sums of eight bytes each, as a place of the driver interface.
    pub sums: DevicePlace,
    /// The device address of the same memory.
    pub sums_address: DeviceAddress,
}

impl Checksum {
    /// The kernel, for callers that launch it by other means. Its parameters are `(address, bytes, sums)`, eight bytes each.
    pub const PTX: &'static str = include_str!("checksum.ptx");
    /// Its name.
    pub const KERNEL: &'static str = "kiln_checksum";
    /// Bytes of a chunk, which has one sum; the last chunk may be shorter.
    pub const CHUNK_BYTES: u64 = 2 << 20;
    /// The alignment of the memory.
    pub const ALIGNMENT_BYTES: u64 = 16;
    /// Threads of a block.
    pub const BLOCK_THREADS: u32 = 256;
    /// Bytes that one block of the grid sums.
    const PART_BYTES: u64 = Self::CHUNK_BYTES / 8;

    /// How many sums there are for that many bytes.
    pub const fn chunks(bytes: u64) -> u64 {
        bytes.div_ceil(Self::CHUNK_BYTES)
    }

    /// How many blocks sum that many bytes; `None` if a grid cannot have that many.
    pub fn blocks(bytes: u64) -> Option<u32> {
        u32::try_from(bytes.div_ceil(Self::PART_BYTES)).ok().filter(|blocks| *blocks <= i32::MAX as u32)
    }

    /// The sums of bytes on the host.
    pub fn of(bytes: &[u8]) -> Vec<u64> {
        bytes.chunks(Self::CHUNK_BYTES as usize).map(sum).collect()
    }

    /// Loads the kernel.
    ///
    /// # Errors
    /// As for [`Driver::load`]: the device cannot run PTX, or it is lost.
    pub fn load(driver: &dyn Driver) -> Result<Self> {
        let module = driver.load(&Image::Ptx(Self::PTX))?;
        let function = driver.function(module, Self::KERNEL).inspect_err(|_| {
            // The first error is returned.
            let _ = driver.destroy(module.into());
        })?;
        Ok(Self { module, function: function.id })
    }

    /// Unloads the kernel.
    ///
    /// # Errors
    /// As for [`Driver::destroy`].
    pub fn unload(self, driver: &dyn Driver) -> Result<()> {
        driver.destroy(self.module.into())
    }

    /// Queues the summing of memory on a stream: the sums are set to zero and then added up.
    ///
    /// # Safety
    /// From now until the stream is past the submission, the bytes at `address` are mapped; `sums_address` is the address
    /// of `sums`, with eight bytes mapped there for each chunk; and nothing writes to either.
    ///
    /// # Errors
    /// The memory is not aligned or too much; otherwise as for [`Driver::submit`].
    pub unsafe fn submit(
        &self,
        driver: &dyn Driver,
        stream: StreamId,
        it: &ChecksumRequest,
    ) -> Result<Submission> {
        const CALL: &str = "checksum";
        if !it.address.0.is_multiple_of(Self::ALIGNMENT_BYTES) || !it.sums_address.0.is_multiple_of(8) {
            let what = format!("memory at {} with sums at {}", it.address, it.sums_address);
            return Err(Error::invalid(CALL, what, "align memory to 16 bytes and sums to 8"));
        }
        let Some(blocks) = Self::blocks(it.bytes) else {
            return Err(Error::invalid(CALL, format!("{} bytes", it.bytes), "sum less at a time"));
        };
        let cleared = driver.fill(stream, it.sums, 0, Self::chunks(it.bytes) * 8)?;
        if blocks == 0 {
            return Ok(cleared);
        }
        let arguments = Self::arguments(it.address, it.bytes, it.sums_address);
        let launch = LaunchCommand {
            function: self.function,
            grid: blocks.into(),
            block: Self::BLOCK_THREADS.into(),
            cluster: None,
            dynamic_shared_bytes: 0,
            cooperative: false,
            arguments: &arguments,
            declared: None,
            // SAFETY: the kernel reads the bytes at `address` and adds to the sums, and nothing else; the caller guarantees that
            // both are mapped, and that nothing writes to them meanwhile.
            vouched: unsafe { Vouched::new() },
        };
        driver.submit(stream, &Command::Launch(launch))
    }

    /// The kernel's arguments, packed.
    pub fn arguments(address: DeviceAddress, bytes: u64, sums: DeviceAddress) -> [u8; 24] {
        let mut packed = [0; 24];
        for (to, value) in packed.chunks_exact_mut(8).zip([address.0, bytes, sums.0]) {
            to.copy_from_slice(&value.to_le_bytes());
        }
        packed
    }
}

/// The sum of one chunk. The last word is padded with zeros.
fn sum(chunk: &[u8]) -> u64 {
    let (words, rest) = chunk.as_chunks();
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
    let words = words.iter().chain((!rest.is_empty()).then_some(&last));
    let keys = (1u64..).map(|number| number.wrapping_mul(KEY));
    let mixed = words.zip(keys).map(|(word, key)| mix(u64::from_le_bytes(*word).wrapping_add(key)));
    mixed.fold(0, u64::wrapping_add)
}

/// A bijection in which every bit of the input affects every bit of the output.
fn mix(mut word: u64) -> u64 {
    for _ in 0..2 {
        word = (word ^ (word >> 32)).wrapping_mul(MULTIPLIER);
    }
    word ^ (word >> 32)
}
