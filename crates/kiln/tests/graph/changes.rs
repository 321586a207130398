//! Nodes changed in place.

use kiln::launch::{Effect, Number, Parameter, ParameterKind, Signature};
use kiln_driver::Image;
use kiln_driver::call::CallKind;

use super::rig::{LEN, Rig};
use crate::order::kernels::LIBRARY;

#[test]
fn values_grids_and_buffers_are_changed_and_queued_replays_keep_what_they_had() {
    let rig = Rig::seeded();
    let [a, b, ten, hundred] = [1, 1, 10, 100].map(|value| rig.buffer(value));
    let mut builder = rig.gpu.graph();
    let node = rig.mix(&mut builder, &a, &ten, 2);
    let mut graph = builder.build().unwrap();
    graph.replay().unwrap();
    let before = rig.driver.layer().counts();
    // SAFETY: `mix` touches the elements its third argument says, which all buffers have, whatever the grid.
    unsafe { graph.update(node).unwrap().value(3, 3_u32).grid(1).apply() }.unwrap();
    graph.replay().unwrap();
    // SAFETY: as above.
    unsafe { graph.update(node).unwrap().read_write(0, &b).read(1, &hundred).value(2, 2_u32).apply() }
        .unwrap();
    let counts = rig.driver.layer().counts().since(&before);
    assert_eq!((counts.of(CallKind::UpdateGraph), counts.of(CallKind::Wait)), (2, 0));
    graph.replay().unwrap();
    graph.replay().unwrap();
    assert_eq!(a.download().unwrap(), [(2 + 10) * 3 + 10; LEN]);
    assert_eq!(b.download().unwrap(), [(3 + 100) * 3 + 100, (3 + 100) * 3 + 100, 1, 1]);
    drop((a, b, ten, hundred, graph));
    rig.finish();
}

#[test]
fn a_replay_after_a_change_stamps_what_it_uses_then() {
    let rig = Rig::seeded();
    let [a, b, one] = [0, 0, 1].map(|value| rig.buffer(value));
    let other = rig.gpu.stream().unwrap();
    let mut builder = rig.gpu.graph();
    let node = rig.mix(&mut builder, &a, &one, 1);
    let mut graph = builder.build().unwrap();
    // SAFETY: `mix` touches `LEN` elements, which both buffers have.
    unsafe { graph.update(node).unwrap().read_write(0, &b).apply() }.unwrap();
    for _ in 0..5 {
        graph.replay().unwrap();
        rig.mix_now(&other, &b, &one, 1);
    }
    assert_eq!((a.download().unwrap(), b.download().unwrap()), (vec![0; LEN], vec![10; LEN]));
    drop((a, b, one, other, graph));
    rig.finish();
}

#[test]
fn copies_and_fills_are_changed() {
    let rig = Rig::seeded();
    let [a, b, c] = [1, 2, 0].map(|value| rig.buffer(value));
    let ((mut graph, (fill, copy)), half) = (
        rig.gpu.record(|builder| Ok((builder.fill(&a, 5)?, builder.copy(&a, &c)?))).unwrap(),
        |buffer: &kiln::GpuRef<u32>| buffer.view(..2).unwrap(),
    );
    graph.replay().unwrap();
    assert_eq!(c.download().unwrap(), [5; LEN]);
    graph.update_fill(fill, &a, 6).unwrap();
    graph.update_copy(copy, &half(&b), &half(&c)).unwrap();
    graph.replay().unwrap();
    assert_eq!((a.download().unwrap(), c.download().unwrap()), (vec![6; LEN], vec![2, 2, 5, 5]));
    graph.update_fill(fill, &half(&a), 7_u32).unwrap();
    graph.update_copy(copy, &a, &c).unwrap();
    graph.replay().unwrap();
    assert_eq!(c.download().unwrap(), [7, 7, 6, 6]);
    drop((a, b, c, graph));
    rig.finish();
}

/// A kernel of which nothing is known but what it was given first.
#[test]
fn arguments_of_an_unknown_kernel_are_replaced_where_they_lie() {
    let rig = Rig::seeded();
    let unknown = |at: u32, bytes| Parameter {
        name: None,
        offset: at,
        bytes,
        kind: ParameterKind::Unknown,
        number: Number::Unknown,
    };
    let signature = Signature::new(vec![
        Parameter { kind: ParameterKind::Pointer(Effect::Unknown), ..unknown(0, 8) },
        unknown(8, 8),
        unknown(16, 4),
        unknown(20, 4),
    ]);
    let mix = rig.gpu.load_kernel(&Image::HostKernels(LIBRARY), "mix", Some(signature)).unwrap();
    let (to, from) = (rig.buffer(1), rig.buffer(1));
    let mut builder = rig.gpu.graph();
    let arguments = (kiln::launch::InOut(&to), kiln::launch::In(&from), LEN as u32, 7_u32);
    // SAFETY: `mix` touches `LEN` elements, which both buffers have.
    let node = unsafe { builder.launch(&mix).grid(1).block(1).pass(arguments).record() }.unwrap();
    let mut graph = builder.build().unwrap();
    // SAFETY: as above.
    unsafe { graph.update(node).unwrap().value(3, 2_u32).apply() }.unwrap();
    graph.replay().unwrap();
    assert_eq!(to.download().unwrap(), [3; LEN]);
    drop((to, from, graph, mix));
    rig.finish();
}
