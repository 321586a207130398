//! What a graph refuses, with nothing queued and nothing changed.

use kiln::{
    DeviceRuntime,
    error::{ErrorKind, Misuse},
    graph::GraphError,
    launch::Mismatch,
};

use super::rig::{LEN, Rig, refusal};

#[test]
fn a_change_that_needs_an_edge_the_graph_lacks_is_refused() {
    let rig = Rig::seeded();
    let [a, b, c, d] = [1, 2, 3, 4].map(|value| rig.buffer(value));
    let mut builder = rig.gpu.graph();
    let first = rig.mix(&mut builder, &a, &c, 2);
    let second = rig.mix(&mut builder, &b, &c, 3);
    let third = rig.mix(&mut builder, &a, &d, 1);
    let mut graph = builder.build().unwrap();
    let error = {
        let mut update = graph.update(second).unwrap();
        // SAFETY: `mix` touches `LEN` elements, which all buffers have.
        refusal(unsafe { update.read_write(0, &a).apply() })
    };
    let owner = a.block_id().to_string();
    assert_eq!(error, GraphError::Unordered { node: second.index(), other: first.index(), owner });
    // Reading what both read needs no edge, and what is ordered already may be shared.
    // SAFETY: as above.
    unsafe { graph.update(second).unwrap().read(1, &d).apply() }.unwrap();
    // SAFETY: as above.
    unsafe { graph.update(third).unwrap().read_write(0, &d).read(1, &a).apply() }
        .expect_err("`second` reads it");
    // SAFETY: as above.
    unsafe { graph.update(second).unwrap().read(1, &c).apply() }.unwrap();
    // SAFETY: as above.
    unsafe { graph.update(third).unwrap().read_write(0, &d).read(1, &a).apply() }.unwrap();
    graph.replay().unwrap();
    assert_eq!(a.download().unwrap(), [5; LEN]);
    assert_eq!(b.download().unwrap(), [9; LEN]);
    assert_eq!(d.download().unwrap(), [9; LEN]);
    drop((a, b, c, d, graph));
    rig.finish();
}

#[test]
fn handles_of_another_graph_are_refused() {
    let rig = Rig::seeded();
    let a = rig.buffer(1);
    let record = || {
        rig.gpu
            .record(|builder| {
                Ok((builder.fill(&a, 1)?, builder.upload(&a, &[2; LEN])?, builder.download(&a)?))
            })
            .unwrap()
    };
    let ((mut graph, _), (_other, (node, input, output))) = (record(), record());
    assert_eq!(refusal(graph.update_fill(node, &a, 2)), GraphError::ForeignHandle { what: "node" });
    assert_eq!(refusal(graph.input(&input)), GraphError::ForeignHandle { what: "input" });
    assert_eq!(refusal(graph.output(&output)), GraphError::ForeignHandle { what: "output" });
    drop((graph, _other, a));
    rig.finish();
}

#[test]
fn a_node_stays_what_it_is() {
    let rig = Rig::seeded();
    let (a, b) = (rig.buffer(1), rig.buffer(2));
    let none = a.view(..0).unwrap();
    let mut builder = rig.gpu.graph();
    let (fill, copy) = (builder.fill(&a, 1).unwrap(), builder.copy(&a, &b).unwrap());
    let launch = rig.mix(&mut builder, &a, &b, 1);
    let mut graph = builder.build().unwrap();
    let is = |error: GraphError| match error {
        GraphError::Kind { node, is, .. } => (node, is),
        other => panic!("{other}"),
    };
    assert_eq!(is(refusal(graph.update(fill).map(drop))), (0, "a fill"));
    assert_eq!(is(refusal(graph.update_copy(launch, &a, &b))), (2, "a launch"));
    assert_eq!(is(refusal(graph.update_fill(copy, &a, 1))), (1, "a copy"));
    assert_eq!(refusal(graph.update_fill(fill, &none, 1)), GraphError::Empty { node: 0 });
    assert_eq!(refusal(graph.update_copy(copy, &none, &none)), GraphError::Empty { node: 1 });
    drop((a, b, none, graph));
    rig.finish();
}

#[test]
fn the_checks_of_a_launch_hold_when_it_is_recorded_and_when_it_is_changed() {
    let rig = Rig::seeded();
    let (a, b) = (rig.buffer(1), rig.buffer(2));
    let mut builder = rig.gpu.graph();
    let mismatch = |error: kiln::Error| match error.kind() {
        ErrorKind::Mismatch(mismatch) => mismatch.clone(),
        other => panic!("expected a mismatch, got {other}"),
    };
    // SAFETY: here and below, nothing is recorded or changed that would run outside of its buffers.
    let short = unsafe { builder.launch(&rig.kernels.mix).grid(1).block(1).read_write(&a).read(&b).record() };
    assert!(matches!(mismatch(short.unwrap_err()), Mismatch::Count { wanted: 4, given: 2, .. }));
    // SAFETY: as above.
    let read = unsafe {
        builder.launch(&rig.kernels.mix).grid(1).block(1).read(&a).read(&b).value(4_u32).value(1_u32).record()
    };
    assert!(matches!(mismatch(read.unwrap_err()), Mismatch::Access { .. }));
    // SAFETY: as above.
    let twice = unsafe {
        builder
            .launch(&rig.kernels.join)
            .grid(1)
            .block(1)
            .write(&a)
            .read_write(&a)
            .read(&b)
            .value(4_u32)
            .record()
    };
    assert!(matches!(twice.unwrap_err().kind(), ErrorKind::Misuse(Misuse::Overlap { first: 0, second: 1 })));
    assert!(builder.is_empty(), "what was refused is no node");

    let node = rig.mix(&mut builder, &a, &b, 1);
    let mut graph = builder.build().unwrap();
    // SAFETY: as above.
    let size = unsafe { graph.update(node).unwrap().value(3, 1_u64).apply() }.unwrap_err();
    assert!(matches!(mismatch(size), Mismatch::Size { wanted: 4, given: 8, .. }));
    // SAFETY: as above.
    let kind = unsafe { graph.update(node).unwrap().value(0, 1_u64).apply() }.unwrap_err();
    assert!(matches!(mismatch(kind), Mismatch::Kind { .. }));
    // SAFETY: as above.
    let count = unsafe { graph.update(node).unwrap().value(4, 1_u32).apply() }.unwrap_err();
    assert!(matches!(mismatch(count), Mismatch::Count { .. }));
    // SAFETY: as above.
    let grid = unsafe { graph.update(node).unwrap().grid(0).apply() }.unwrap_err();
    assert!(matches!(mismatch(grid), Mismatch::Shape { what: "grid", .. }));
    // SAFETY: as above.
    let access = unsafe { graph.update(node).unwrap().read(0, &a).apply() }.unwrap_err();
    assert!(matches!(mismatch(access), Mismatch::Access { .. }));
    graph.replay().unwrap();
    assert_eq!(a.download().unwrap(), [3; LEN]);
    drop((a, b, graph));
    rig.finish();
}

#[test]
fn what_belongs_to_another_runtime_is_refused() {
    let rig = Rig::seeded();
    let other = DeviceRuntime::simulated(2).unwrap();
    let (a, foreign) = (rig.buffer(1), other.upload(&[1_u32; LEN]).unwrap());
    let pinned = other.pinned::<u32>(LEN).unwrap();
    let mut builder = rig.gpu.graph();
    let misuse = |error: kiln::Error| match error.kind() {
        ErrorKind::Misuse(misuse) => misuse.clone(),
        other => panic!("expected a misuse, got {other}"),
    };
    let block = || Misuse::ForeignBlock { block: foreign.block_id() };
    assert_eq!(misuse(builder.fill(&foreign, 1).unwrap_err()), block());
    assert_eq!(misuse(builder.copy(&a, &foreign).unwrap_err()), block());
    assert_eq!(misuse(builder.copy(&foreign, &a).unwrap_err()), block());
    assert_eq!(misuse(builder.upload(&foreign, &[1; LEN]).unwrap_err()), block());
    assert_eq!(misuse(builder.download(&foreign).unwrap_err()), block());
    assert_eq!(misuse(builder.upload_pinned(&a, pinned).unwrap_err()), Misuse::ForeignPinned);
    let node = rig.mix(&mut builder, &a, &rig.buffer(1), 1);
    let mut graph = builder.build().unwrap();
    // SAFETY: nothing is changed.
    let update = unsafe { graph.update(node).unwrap().read(1, &foreign).apply() };
    assert_eq!(misuse(update.unwrap_err()), block());
    let stream = other.stream().unwrap();
    assert!(matches!(misuse(graph.replay_on(&stream).unwrap_err()), Misuse::ForeignStream { .. }));
    drop((graph, a, foreign, stream));
    rig.finish();
}

#[test]
fn lengths_and_overlaps_are_refused() {
    let rig = Rig::seeded();
    let a = rig.buffer(1);
    let mut builder = rig.gpu.graph();
    let view = |range: std::ops::Range<usize>| a.view(range).unwrap();
    let error = builder.copy(&view(0..2), &view(1..3)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::CopyOverlap)));
    let error = builder.copy(&view(0..2), &view(2..3)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Length { buffer: 1, given: 2 })));
    let error = builder.upload(&a, &[1; 3]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Misuse(Misuse::Length { buffer: LEN, given: 3 })));
    drop((a, builder));
    rig.finish();
}

#[test]
fn more_separate_ranges_than_one_submission_may_name_are_refused() {
    let rig = Rig::seeded();
    let large = rig.gpu.allocate::<u8>(3 * 5000).unwrap();
    let mut builder = rig.gpu.graph();
    for at in 0..5000 {
        builder.fill(&large.view(3 * at..3 * at + 2).unwrap(), 1).unwrap();
    }
    assert_eq!(refusal(builder.build()), GraphError::TooManyRanges { ranges: 5000, limit: 4096 });
    drop(large);
    rig.finish();
}
