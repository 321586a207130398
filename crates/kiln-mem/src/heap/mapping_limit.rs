//! A limit on the host memory of remaps that stay mapped.
//!
//! Remaps stay mapped, so that a program that repeats itself finds them. They cost host memory: on driver 580 a mapped frame takes 4 KiB of the
//! process and 19 KiB of the kernel, whether it has 2 MiB or 64. A hundred thousand frames are more than 2 GiB that no tool shows as the
//! program's, so a heap keeps no more than its limit.

/// Host memory for a mapped frame, in the process and in the kernel; 24,000 bytes were measured.
const MAPPING_HOST_BYTES: u64 = 24 << 10;
/// The default limit is this part of the device's memory ...
const PART_OF_DEVICE: u64 = 16;
/// ... and no more than this: 43,690 frames, 1.5 s of mapping. A server can afford it, and twelve of the fifteen points of M2 need no more
/// (see `docs/design/0011-remapping.md`).
const MOST_HOST_BYTES: u64 = 1 << 30;
/// This part of the limit is unmapped at once when the limit is reached.
const BATCH_PART: u64 = 8;

/// How many frames a heap may keep mapped in remaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappingLimit {
    frames: u64,
}

impl MappingLimit {
    /// As many frames as `host_bytes` pay for, or the default for a device.
    pub(crate) fn new(host_bytes: Option<u64>, device_bytes: u64) -> Self {
        let default_bytes = (device_bytes / PART_OF_DEVICE).min(MOST_HOST_BYTES);
        Self { frames: host_bytes.unwrap_or(default_bytes) / MAPPING_HOST_BYTES }
    }

    /// How many frames may stay mapped.
    pub(crate) fn frames(self) -> u64 {
        self.frames
    }

    /// Frames that are unmapped at once when the limit is reached.
    pub(crate) fn batch(self) -> u64 {
        self.frames / BATCH_PART
    }

    /// Frames that a program maps at most if it repeats itself within the limit: as many as may be kept in its first run, in which the heap
    /// grows, and as many in its second, which begins with all frames at their original places.
    pub(crate) fn budget_frames(self) -> u64 {
        self.frames.saturating_mul(2)
    }
}

/// What mapped frames cost the host.
pub(crate) fn host_bytes_of(frames: u64) -> u64 {
    frames.saturating_mul(MAPPING_HOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixteenth_of_the_device_but_a_gibibyte_at_most_or_what_was_said() {
        let small = MappingLimit::new(None, 6 << 30);
        assert_eq!(host_bytes_of(small.frames()), 384 << 20);
        assert_eq!((small.batch(), small.budget_frames()), (2 << 10, 32 << 10));
        for device_bytes in [16 << 30, 24 << 30, 141 << 30, u64::MAX] {
            let host_bytes = host_bytes_of(MappingLimit::new(None, device_bytes).frames());
            assert!(host_bytes <= 1 << 30 && host_bytes > (1 << 30) - MAPPING_HOST_BYTES, "{host_bytes}");
        }
        assert_eq!(MappingLimit::new(Some(24 << 20), 96 << 30).frames(), 1024);
        let nothing = MappingLimit::new(Some(0), 96 << 30);
        assert_eq!((nothing.frames(), nothing.batch(), nothing.budget_frames()), (0, 0, 0));
        let all = MappingLimit::new(Some(u64::MAX), 1);
        assert!(host_bytes_of(all.budget_frames()) == u64::MAX && all.frames() < u64::MAX / 20_000);
    }
}
