//! Replays among other work.

use kiln::buffer::Stale;
use kiln_driver::call::CallKind;
use kiln_driver::layer::CommandKind;
use kiln_sim::MachineConfig;

use super::rig::{LEN, Rig};

#[test]
fn only_true_hazards_are_edges() {
    let rig = Rig::seeded();
    let [a, b, c, d] = [1, 2, 3, 4].map(|value| rig.buffer(value));
    let mut builder = rig.gpu.graph();
    rig.mix(&mut builder, &a, &c, 2);
    rig.mix(&mut builder, &b, &c, 3);
    rig.mix(&mut builder, &d, &a, 1);
    rig.mix(&mut builder, &d, &b, 1);
    builder.fill(&c.view(..2).unwrap(), 9).unwrap();
    builder.fill(&c.view(2..).unwrap(), 8).unwrap();
    let graph = builder.build().unwrap();
    let mut edges: Vec<_> = graph.edges().collect();
    edges.sort_unstable();
    assert_eq!(edges, [(0, 2), (0, 4), (0, 5), (1, 3), (1, 4), (1, 5), (2, 3)]);
    graph.replay().unwrap();
    assert_eq!(d.download().unwrap(), [4 + (2 + 3) + (6 + 3); LEN]);
    assert_eq!(c.download().unwrap(), [9, 9, 8, 8]);
    drop((a, b, c, d, graph));
    rig.finish();
}

#[test]
fn a_replay_is_one_driver_call_however_many_nodes_it_has() {
    let rig = Rig::seeded();
    let (to, from) = (rig.buffer(1), rig.buffer(1));
    let mut builder = rig.gpu.graph();
    for _ in 0..50 {
        rig.mix(&mut builder, &to, &from, 1);
    }
    let graph = builder.build().unwrap();
    graph.replay().unwrap();
    let before = rig.driver.layer().counts();
    for _ in 0..10 {
        graph.replay().unwrap();
    }
    let counts = rig.driver.layer().counts().since(&before);
    assert_eq!((counts.total(), counts.submitted(CommandKind::Graph)), (10, 10));
    assert_eq!(to.download().unwrap(), [1 + 11 * 50; LEN]);
    drop((to, from, graph));
    rig.finish();
}

#[test]
fn work_on_other_streams_waits_for_a_replay_and_a_replay_for_it() {
    let rig = Rig::seeded();
    let (to, from) = (rig.buffer(1), rig.buffer(10));
    let (one, two) = (rig.gpu.stream().unwrap(), rig.gpu.stream().unwrap());
    let mut builder = rig.gpu.graph();
    let scratch = builder.scratch::<u32>(LEN).unwrap();
    builder.copy(&from, &scratch).unwrap();
    rig.mix(&mut builder, &to, &scratch, 2);
    let graph = builder.build().unwrap();
    rig.mix_now(&one, &from, &to, 1);
    graph.replay_on(&two).unwrap();
    rig.mix_now(&one, &from, &to, 1);
    graph.replay_on(&one).unwrap();
    // from: 10, then 11; to: 1 * 2 + 11 = 13; from: 24; to: 26 + 24 = 50.
    assert_eq!(to.download().unwrap(), [50; LEN]);
    drop((to, from, scratch, graph, one, two));
    rig.finish();
}

#[test]
fn everything_a_graph_uses_lives_as_long_as_its_replays() {
    let rig = Rig::seeded();
    let out = rig.buffer(0);
    let mut builder = rig.gpu.graph();
    let (kernels, from) = (crate::order::kernels::Kernels::load(&rig.gpu), rig.buffer(5));
    let scratch = builder.scratch::<u32>(LEN).unwrap();
    builder.upload(&scratch, &[3; LEN]).unwrap();
    let (n, k) = (LEN as u32, 1_u32);
    // SAFETY: `mix` touches `LEN` elements, which both buffers have.
    unsafe {
        builder.launch(&kernels.mix).grid(1).block(1).read_write(&out).read(&from).value(n).value(k).record()
    }
    .unwrap();
    rig.mix(&mut builder, &out, &scratch, 1);
    let graph = builder.build().unwrap();
    drop((kernels, from, scratch));
    // What would take the memory if it were free.
    let others: Vec<_> = (0..8).map(|_| rig.buffer(77)).collect();
    graph.replay().unwrap();
    graph.replay_on(&rig.gpu.stream().unwrap()).unwrap();
    drop(graph);
    let later: Vec<_> = (0..8).map(|_| rig.buffer(78)).collect();
    assert_eq!(out.download().unwrap(), [2 * (5 + 3); LEN]);
    rig.gpu.synchronize().unwrap();
    rig.gpu.reap_pending().unwrap();
    drop((out, others, later));
    rig.finish();
}

#[test]
fn a_graph_is_given_back_to_the_driver_once_its_replays_are_done() {
    let rig = Rig::seeded();
    let out = rig.buffer(0);
    let graph = rig.gpu.record(|builder| builder.fill(&out, 3)).unwrap().0;
    graph.replay().unwrap();
    rig.gpu.synchronize().unwrap();
    let before = rig.driver.layer().counts();
    drop(graph);
    assert_eq!(rig.driver.layer().counts().since(&before).of(CallKind::Destroy), 1);
    drop(out);
    rig.finish();
}

#[test]
fn a_graph_outlives_its_runtime_and_says_so() {
    let rig = Rig::seeded();
    let out = rig.buffer(0);
    let (mut graph, output) = rig
        .gpu
        .record(|builder| {
            builder.fill(&out, 3)?;
            builder.download(&out)
        })
        .unwrap();
    graph.replay().unwrap();
    rig.abandon();
    let error = graph.replay().expect_err("the runtime is gone");
    assert!(matches!(error.kind(), kiln::error::ErrorKind::Stale(Stale::DeviceDropped)), "{error}");
    graph.output(&output).expect_err("the runtime is gone");
}

#[test]
fn inputs_and_outputs_wait_for_the_replays_that_use_them() {
    let rig = Rig::seeded();
    let (data, sum) = (rig.buffer(0), rig.buffer(0));
    let mut builder = rig.gpu.graph();
    let mut pinned = rig.gpu.pinned::<u32>(LEN).unwrap();
    pinned.write().unwrap().fill(1);
    let input = builder.upload_pinned(&data, pinned).unwrap();
    rig.mix(&mut builder, &sum, &data, 1);
    let output = builder.download(&sum).unwrap();
    let mut graph = builder.build().unwrap();
    assert_eq!(graph.output(&output).unwrap(), [0; LEN]);
    for (round, total) in [(2, 1), (3, 3), (4, 6)] {
        graph.replay().unwrap();
        graph.input(&input).unwrap().fill(round);
        assert_eq!(graph.output(&output).unwrap(), [total; LEN]);
    }
    drop((graph, data, sum));
    rig.finish();
}

#[test]
fn nothing_to_do_is_a_graph_too() {
    let rig = Rig::seeded();
    let empty = rig.gpu.allocate::<u32>(0).unwrap();
    let some = rig.buffer(1);
    let mut builder = rig.gpu.graph();
    assert!(builder.is_empty());
    builder.fill(&empty, 1).unwrap();
    builder.copy(&empty, &empty).unwrap();
    let (input, output) = (builder.upload(&empty, &[]).unwrap(), builder.download(&empty).unwrap());
    let mut nothing = builder.build().unwrap();
    nothing.replay().unwrap().wait().unwrap();
    assert!(nothing.input(&input).unwrap().is_empty() && nothing.output(&output).unwrap().is_empty());

    let mut builder = rig.gpu.graph();
    builder.fill(&empty, 1).unwrap();
    let node = builder.fill(&some, 5).unwrap();
    builder.copy(&empty, &empty).unwrap();
    let mut graph = builder.build().unwrap();
    graph.update_fill(node, &some, 6).unwrap();
    graph.replay().unwrap();
    assert_eq!(some.download().unwrap(), [6; LEN]);
    drop((graph, nothing, some, empty));
    rig.finish();
}

#[test]
fn values_no_device_can_fill_with_are_still_filled() {
    let rig = Rig::seeded();
    let wide = rig.gpu.allocate::<f64>(5).unwrap();
    let (mut graph, node) = rig.gpu.record(|builder| builder.fill(&wide, 1.5)).unwrap();
    graph.replay().unwrap();
    assert_eq!(wide.download().unwrap(), [1.5; 5]);
    graph.replay().unwrap();
    graph.update_fill(node, &wide, -2.25).unwrap();
    graph.replay().unwrap();
    assert_eq!(wide.download().unwrap(), [-2.25; 5]);
    drop((graph, wide));
    rig.finish();
}

/// Additions commute, so whatever the order the threads came in, the sum is known; a replay that ran beside another would lose one.
#[test]
fn replays_from_many_threads_and_streams_are_all_there() {
    const THREADS: u32 = 4;
    const ROUNDS: u32 = 40;
    let rig = Rig::new(MachineConfig::threaded());
    let (sum, one) = (rig.buffer(0), rig.buffer(1));
    let mut builder = rig.gpu.graph();
    let half = |at: std::ops::Range<usize>| (sum.view(at.clone()).unwrap(), one.view(at).unwrap());
    for (to, from) in [half(0..2), half(2..4), half(0..2)] {
        let mut launch = builder.launch(&rig.kernels.mix);
        launch.grid(1).block(1);
        launch.read_write(&to).read(&from).value(2_u32).value(1_u32);
        // SAFETY: `mix` touches two elements, which both views have.
        unsafe { launch.record() }.unwrap();
    }
    let graph = builder.build().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (rig, graph, sum, one) = (&rig, &graph, &sum, &one);
            scope.spawn(move || {
                let stream = rig.gpu.stream().unwrap();
                for round in 0..ROUNDS {
                    graph.replay_on(&stream).unwrap();
                    if round % 5 == thread {
                        rig.mix_now(&stream, sum, one, 1);
                    }
                }
            });
        }
    });
    let plain = THREADS * ROUNDS / 5;
    let replays = THREADS * ROUNDS;
    let expected = [2 * replays + plain, 2 * replays + plain, replays + plain, replays + plain];
    assert_eq!(sum.download().unwrap(), expected);
    drop((sum, one, graph));
    rig.finish();
}

#[test]
fn a_graph_can_be_sent_and_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<kiln::Graph>();
    shared::<kiln::graph::GraphBuilder>();
    shared::<kiln::graph::Input<f32>>();
    shared::<kiln::graph::Output<f32>>();
}
