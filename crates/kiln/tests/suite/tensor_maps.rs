//! Tensor maps through the runtime: bytes for kernels, and descriptions that are refused.

use kiln::tensor::{DeviceTensorMap, TensorElement, TensorMap, TensorSwizzle};
use kiln::{DeviceRuntime, GpuRef, Kernel};

/// Copies a tile of 16 columns and 8 rows, from column 8 and row 4 on, to the first tile of another matrix.
const TILE: &str = include_str!("../tensor_tile.ptx");

/// A runtime with the kernel, and two matrices of 32 columns and 16 rows.
struct Scene {
    gpu: DeviceRuntime,
    kernel: Kernel,
    from: GpuRef<u32>,
    to: GpuRef<u32>,
}

impl Scene {
    fn new() -> Self {
        let gpu = DeviceRuntime::simulated(1).unwrap();
        let kernel = gpu.kernel(TILE, "tile").unwrap();
        let (from, to) = (gpu.upload(&content()).unwrap(), gpu.zeros::<u32>(512).unwrap());
        Self { gpu, kernel, from, to }
    }

    fn maps(&self) -> [DeviceTensorMap; 2] {
        [&self.from, &self.to].map(|buffer| self.map_of(buffer))
    }

    fn map_of(&self, buffer: &GpuRef<u32>) -> DeviceTensorMap {
        self.gpu.tensor_map(buffer, &matrix(buffer.address().0)).unwrap()
    }

    fn is_clean(&self) {
        self.gpu.synchronize().unwrap();
        assert!(self.gpu.findings().findings.is_empty(), "{:?}", self.gpu.findings());
    }
}

fn content() -> Vec<u32> {
    (0..512).collect()
}

fn matrix(address: u64) -> TensorMap {
    TensorMap::tiled(address, TensorElement::U32, &[32, 16], &[16, 8]).with_swizzle(TensorSwizzle::B64)
}

/// What the kernel makes of a matrix of zeros.
fn expected(content: &[u32]) -> Vec<u32> {
    let mut expected = vec![0; 512];
    for (y, x) in (0..8).flat_map(|y| (0..16).map(move |x| (y, x))) {
        expected[y * 32 + x] = content[(y + 4) * 32 + x + 8];
    }
    expected
}

#[test]
fn a_launch_takes_tensor_maps_and_orders_their_buffers() {
    let scene = Scene::new();
    let [from, to] = scene.maps();
    let doubled: Vec<u32> = content().iter().map(|x| 2 * x).collect();
    let (first, second) = (scene.gpu.stream().unwrap(), scene.gpu.stream().unwrap());
    // Written, read by the kernel and read again on three streams: only the order of the buffers is between them.
    scene.from.upload_on(&first, &doubled).unwrap();
    let mut launch = scene.gpu.launch(&scene.kernel);
    launch.threads(32).on(&second).read_map(&from).write_map(&to);
    // SAFETY: the kernel reads and writes the tensors of its maps.
    unsafe { launch.submit() }.unwrap();
    assert_eq!(scene.to.download().unwrap(), expected(&doubled));
    scene.is_clean();
}

#[test]
fn a_tensor_map_keeps_the_memory_of_its_buffer() {
    let Scene { gpu, kernel, from, to } = Scene::new();
    let map = |buffer: &GpuRef<u32>| gpu.tensor_map(buffer, &matrix(buffer.address().0)).unwrap();
    let (from_map, to_map) = (map(&from), map(&to));
    drop(from);
    let others: Vec<GpuRef<u32>> = (0..8).map(|_| gpu.zeros::<u32>(512).unwrap()).collect();
    let mut launch = gpu.launch(&kernel);
    launch.threads(32).read_map(&from_map).write_map(&to_map);
    // SAFETY: the kernel reads and writes the tensors of its maps.
    unsafe { launch.submit() }.unwrap();
    assert_eq!(to.download().unwrap(), expected(&content()));
    gpu.synchronize().unwrap();
    assert!(gpu.findings().findings.is_empty(), "{:?}", gpu.findings());
    drop(others);
}

#[test]
fn a_map_that_the_kernel_writes_must_be_declared_as_written() {
    let scene = Scene::new();
    let [from, to] = scene.maps();
    let mut launch = scene.gpu.launch(&scene.kernel);
    launch.threads(32).read_map(&from).read_map(&to);
    // SAFETY: it is refused.
    let wrong = unsafe { launch.submit() }.unwrap_err().to_string();
    assert!(wrong.contains("parameter 1 (`to`)") && wrong.contains("declare it as written"), "{wrong}");
}

#[test]
fn a_buffer_is_no_tensor_map() {
    let scene = Scene::new();
    let [from, _] = scene.maps();
    let mut launch = scene.gpu.launch(&scene.kernel);
    launch.threads(32).read_map(&from).write(&scene.to);
    // SAFETY: it is refused.
    let wrong = unsafe { launch.submit() }.unwrap_err().to_string();
    assert!(wrong.contains("it is a tensor map") && wrong.contains("DeviceRuntime::tensor_map"), "{wrong}");
}

#[test]
fn a_graph_keeps_tensor_maps_and_changes_them() {
    let scene = Scene::new();
    let [from, to] = scene.maps();
    let (mut graph, node) = {
        let mut recorded = scene.gpu.graph();
        let mut launch = recorded.launch(&scene.kernel);
        launch.threads(32).read_map(&from).write_map(&to);
        // SAFETY: the kernel reads and writes the tensors of its maps.
        let node = unsafe { launch.record() }.unwrap();
        (recorded.build().unwrap(), node)
    };
    drop((from, to));
    graph.replay().unwrap();
    assert_eq!(scene.to.download().unwrap(), expected(&content()));
    let other = scene.gpu.upload(&vec![7_u32; 512]).unwrap();
    let map = scene.map_of(&other);
    // SAFETY: as above.
    unsafe { graph.update(node).unwrap().read_map(0, &map).apply() }.unwrap();
    graph.replay().unwrap();
    assert_eq!(scene.to.download().unwrap(), expected(&[7; 512]));
    // SAFETY: it is refused.
    let wrong = unsafe { graph.update(node).unwrap().value(0, [0_u8; 128]).apply() };
    let wrong = wrong.unwrap_err().to_string();
    assert!(wrong.contains("tensor map"), "{wrong}");
    scene.is_clean();
}

#[test]
fn bytes_of_a_map_are_a_value_beside_which_the_buffer_is_declared() {
    let scene = Scene::new();
    let [from, to] = scene.maps();
    let mut launch = scene.gpu.launch(&scene.kernel);
    launch.threads(32).value_bytes(from.bytes()).value_bytes(to.bytes());
    launch.also_read(&scene.from).also_write(&scene.to);
    // SAFETY: the kernel reads and writes the tensors of its maps.
    unsafe { launch.submit() }.unwrap();
    assert_eq!(scene.to.download().unwrap(), expected(&content()));
    scene.is_clean();
}

#[test]
fn descriptions_that_cuda_does_not_allow_are_refused_with_the_field() {
    let Scene { gpu, from, .. } = Scene::new();
    let address = from.address().0;
    let told = |map: TensorMap| gpu.tensor_map(&from, &map).unwrap_err().to_string();
    let wrong = told(matrix(address).with_strides(&[100]));
    assert!(
        wrong.contains("globalStrides[0] of the tensor map is 100; it must be a multiple of 16"),
        "{wrong}"
    );
    let wrong = told(matrix(address + 1));
    assert!(wrong.contains("globalAddress"), "{wrong}");
}

#[test]
fn a_tensor_outside_of_its_buffer_is_refused() {
    let Scene { gpu, from, .. } = Scene::new();
    let address = from.address().0;
    for address in [address + 16, address - 16] {
        let wrong = gpu.tensor_map(&from, &matrix(address)).unwrap_err().to_string();
        assert!(
            wrong.contains("a tensor of 2048 bytes") && wrong.contains("a buffer of 2048 bytes"),
            "{wrong}"
        );
    }
    let rows = TensorMap::tiled(address + 128, TensorElement::U32, &[32, 15], &[16, 8]);
    gpu.tensor_map(&from, &rows).unwrap();
}
