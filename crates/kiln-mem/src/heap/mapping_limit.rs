//! What mapping may cost the host.
//!
//! The rows a heap has mapped stay mapped, so that a program that repeats itself finds them. They cost the host memory: on driver 580 a
//! frame that is mapped takes 4 KiB of the process and 19 KiB of the system, whether it has 2 MiB or 64. A hundred thousand of them are more than
//! 2 GiB that no account of the program shows, so a heap keeps no more than it was told to.

/// What the driver takes from the host for a mapped frame, in the process and in the system: 24,000 bytes were measured.
const MAPPING_HOST_BYTES: u64 = 24 << 10;
/// The host memory that may be taken if nothing was said is this part of the device's memory.
const PART_OF_DEVICE: u64 = 16;
/// This part of the limit is unmapped at once when it is reached.
const BATCH_PART: u64 = 8;

/// How many frames a heap may keep mapped in rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappingLimit {
    frames: u64,
}

impl MappingLimit {
    /// As many as so much of the host's memory is enough for; if nothing was said, as fits the device.
    pub(crate) fn new(host_bytes: Option<u64>, device_bytes: u64) -> Self {
        Self { frames: host_bytes.unwrap_or(device_bytes / PART_OF_DEVICE) / MAPPING_HOST_BYTES }
    }

    /// The frames.
    pub(crate) fn frames(self) -> u64 {
        self.frames
    }

    /// Frames that are unmapped at once when one more is too many.
    pub(crate) fn batch(self) -> u64 {
        self.frames / BATCH_PART
    }

    /// Frames that are mapped before it is certain that a program does not repeat itself within what can be kept. One that does maps at most
    /// what can be kept in its first run, when the heap grows, and as much in its second, which begins with everything there.
    pub(crate) fn enough_frames(self) -> u64 {
        self.frames.saturating_mul(2)
    }
}

/// What so many mapped frames cost the host.
pub(crate) fn host_bytes_of(frames: u64) -> u64 {
    frames.saturating_mul(MAPPING_HOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sixteenth_of_the_device_or_what_was_said() {
        let device = MappingLimit::new(None, 96 << 30);
        assert_eq!(host_bytes_of(device.frames()), 6 << 30);
        assert_eq!((device.batch(), device.enough_frames()), (32 << 10, 512 << 10));
        assert_eq!(MappingLimit::new(Some(24 << 20), 96 << 30).frames(), 1024);
        let nothing = MappingLimit::new(Some(0), 96 << 30);
        assert_eq!((nothing.frames(), nothing.batch(), nothing.enough_frames()), (0, 0, 0));
        let all = MappingLimit::new(Some(u64::MAX), 1);
        assert!(host_bytes_of(all.enough_frames()) == u64::MAX && all.frames() < u64::MAX / 20_000);
    }
}
