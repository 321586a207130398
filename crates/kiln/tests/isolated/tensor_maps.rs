//! Tensor maps of devices in worker processes.

use kiln::tensor::{TensorElement, TensorMap};

use crate::rig;

/// Copies a tile of 16 columns and 8 rows, from column 8 and row 4 on, to the first tile of another matrix.
const TILE: &str = include_str!("../tensor_tile.ptx");

#[test]
fn a_worker_writes_tensor_maps_and_runs_kernels_with_them() {
    let gpu = rig::open(71, rig::process());
    let kernel = gpu.kernel(TILE, "tile").unwrap();
    let content: Vec<u32> = (0..512).collect();
    let (from, to) = (gpu.upload(&content).unwrap(), gpu.zeros::<u32>(512).unwrap());
    let tiles = |address| TensorMap::tiled(address, TensorElement::U32, &[32, 16], &[16, 8]);
    let maps = [&from, &to].map(|buffer| gpu.tensor_map(buffer, &tiles(buffer.address().0)).unwrap());
    let mut launch = gpu.launch(&kernel);
    launch.threads(32).read_map(&maps[0]).write_map(&maps[1]);
    // SAFETY: the kernel reads and writes the tensors of its maps.
    unsafe { launch.submit() }.unwrap();
    let moved = to.download().unwrap();
    for (y, x) in (0..16).flat_map(|y| (0..32).map(move |x| (y, x))) {
        let expected = if y < 8 && x < 16 { content[(y + 4) * 32 + x + 8] } else { 0 };
        assert_eq!(moved[y * 32 + x], expected, "column {x} of row {y}");
    }
    gpu.synchronize().unwrap();
}
