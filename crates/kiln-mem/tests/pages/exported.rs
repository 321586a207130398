//! Blocks that are written here and read through descriptors of their pages.

use std::os::fd::{AsFd, OwnedFd};

use kiln_driver::{Base, DevicePlace, DriverExt, Object, Protection, ReserveRequest};
use kiln_mem::{
    Budget, DeviceBlock, HeapConfig, MemoryResource, MemoryResourceExt, PagePart, Pages, StreamRef,
};

use crate::rig::{MIB, Rig, request};

fn exportable() -> HeapConfig {
    HeapConfig { exportable: true, ..HeapConfig::default() }
}

/// A block of whole pages.
pub(crate) fn block_of_pages(rig: Rig) {
    let stream = rig.stream();
    let pages = Pages::new(rig.driver(), rig.order(), exportable()).unwrap();
    let block = pages.allocate(&request(7 * MIB, stream)).unwrap();
    rig.write(stream, &block, 77);
    rig.synchronize(stream);
    let parts = pages.page_parts(&block).unwrap();
    assert_chained(&parts, &block);
    assert_eq!(parts.iter().map(|part| part.pages_bytes / MIB).collect::<Vec<_>>(), [8]);
    let descriptors: Vec<_> = parts.iter().map(|part| pages.export_pages(part).unwrap()).collect();
    assert!(read_imported(&rig, stream, &parts, &descriptors, block.bytes()).iter().all(|byte| *byte == 77));
    let empty = pages.allocate(&request(0, stream)).unwrap();
    assert_eq!(pages.page_parts(&empty).unwrap(), []);
    pages.free(empty).unwrap();
    pages.free(block).unwrap();
    drop(pages);
    rig.finish(&[stream]);
}

/// A block of a heap that lies in several allocations, and a small one.
pub(crate) fn remapped_block(rig: Rig) {
    let stream = rig.stream();
    let heap = rig.heap_with(HeapConfig { budget: Some(Budget::new("all", 32 * MIB)), ..exportable() });
    let mut blocks: Vec<_> =
        (0..8).map(|_| Some(heap.allocate(&request(4 * MIB, stream)).unwrap())).collect();
    for at in [0, 3, 6] {
        heap.free(blocks[at].take().unwrap()).unwrap();
    }
    let folded = heap.allocate(&request(11 * MIB, stream)).unwrap();
    assert_eq!(heap.activity().remaps_mapped, 1);
    let small = heap.allocate(&request(1000, stream)).unwrap();
    for (block, byte) in [(&folded, 11), (&small, 12)] {
        rig.write(stream, block, byte);
        rig.synchronize(stream);
        let parts = heap.page_parts(block).unwrap();
        assert_chained(&parts, block);
        let descriptors: Vec<_> = parts.iter().map(|part| heap.export_pages(part).unwrap()).collect();
        let read = read_imported(&rig, stream, &parts, &descriptors, block.bytes());
        assert!(read.iter().all(|seen| *seen == byte));
    }
    assert!(heap.page_parts(&folded).unwrap().len() > 1);
    blocks.into_iter().flatten().chain([folded, small]).for_each(|block| heap.free(block).unwrap());
    drop(heap);
    rig.finish(&[stream]);
}

/// Maps what descriptors stand for once more, and reads the block there.
fn read_imported(
    rig: &Rig,
    stream: StreamRef,
    parts: &[PagePart],
    descriptors: &[OwnedFd],
    bytes: u64,
) -> Vec<u8> {
    let total = parts.iter().map(|part| part.pages_bytes).sum();
    let window = rig.device.reserve(ReserveRequest { bytes: total, at: None }).unwrap();
    let import = |(part, descriptor): (&PagePart, &OwnedFd)| {
        rig.device.import_pages(descriptor.as_fd(), part.pages_bytes).unwrap()
    };
    let imported: Vec<_> = parts.iter().zip(descriptors).map(import).collect();
    rig.device.map(window.id, 0, &imported, Protection::ReadWrite).unwrap();
    let host = rig.device.allocate_host(bytes).unwrap();
    let place = DevicePlace { base: Base::Reservation(window.id), offset: parts[0].offset };
    rig.device.download(stream.id(), place, &host, bytes).unwrap();
    rig.synchronize(stream);
    let mut read = vec![0; host.len()];
    assert!(host.read(0, &mut read));
    rig.device.destroy(Object::Host(host.id())).unwrap();
    rig.device.unmap(window.id, 0, total).unwrap();
    imported.into_iter().for_each(|pages| rig.device.destroy(Object::Pages(pages)).unwrap());
    rig.device.destroy(Object::Reservation(window.id)).unwrap();
    read
}

/// The parts of a block are a chain without gaps: only the first may begin late, only the last may end early.
fn assert_chained(parts: &[PagePart], block: &DeviceBlock) {
    assert_eq!(parts.iter().map(|part| part.bytes).sum::<u64>(), block.bytes());
    for (at, part) in parts.iter().enumerate() {
        assert!(at == 0 || part.offset == 0);
        assert!(at + 1 == parts.len() || part.offset + part.bytes == part.pages_bytes);
    }
}
