//! Variables of modules when their worker is lost: they start over, and handles say so.

use kiln::buffer::Stale;

use crate::rig;

const PTX: &str = include_str!("../suite/loaded_code/variables.ptx");

#[test]
fn variables_are_lost_with_their_worker_and_found_again_with_their_first_values() {
    for seed in 90..93 {
        let gpu = rig::open(seed, rig::process());
        let count = gpu.kernel(PTX, "count").unwrap();
        let counter = count.module().global::<u32>("counter").unwrap();
        counter.fill(40).unwrap();
        // SAFETY: the kernel touches its variable alone.
        unsafe { gpu.launch(&count).threads(1).submit() }.unwrap();
        assert_eq!(counter.download().unwrap(), [41]);
        rig::kill(&gpu);
        assert_eq!(counter.access().map(drop), Err(Stale::Lost), "seed {seed}");
        assert!(counter.download().is_err());
        let again = count.module().global::<u32>("counter").unwrap();
        assert_eq!(again.download().unwrap(), [5]);
        // SAFETY: as above.
        unsafe { gpu.launch(&count).threads(1).submit() }.unwrap();
        assert_eq!(again.download().unwrap(), [6], "seed {seed}");
    }
}
