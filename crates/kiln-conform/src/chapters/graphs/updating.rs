//! Laws about changing nodes of a graph.

use kiln_driver::{Command, Dim3, DriverExt, GraphNode, LaunchCommand, Pattern, Place};

use super::{copy, store};
use crate::expect::{equal, inapplicable, refused_somehow, same_bytes};
use crate::fixture::{Rig, at, host_at, plain_launch, read_host};
use crate::kernels::Arguments;
use crate::law::LawVerdict;

pub(super) fn update(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (first, second, target) =
        (rig.memory_with(&[1; 64])?, rig.memory_with(&[2; 64])?, rig.memory_with(&[0; 64])?);
    let (filled, word) = (rig.memory_with(&[0; 64])?, rig.words(1)?);
    let value = rig.kernel("store_value")?;
    let (seven, eight) =
        (Arguments::new().address(word.address).u32(7), Arguments::new().address(word.address).u32(8));
    let fill =
        |byte, offset, count| Command::Fill { to: at(filled.id, offset), pattern: Pattern::U8(byte), count };
    let nodes = [
        GraphNode { command: copy(&first, &target, 64), after: &[] },
        GraphNode { command: fill(3, 0, 64), after: &[0] },
        GraphNode { command: store(value.id, &seven), after: &[1] },
    ];
    let graph = rig.graph(&nodes)?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("the first run's word", rig.get_words(&word, 1)?, vec![7])?;
    rig.driver.update_graph(graph, 0, &copy(&second, &target, 32))?;
    rig.driver.update_graph(graph, 1, &fill(4, 16, 16))?;
    rig.driver.update_graph(graph, 2, &store(value.id, &eight))?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    let mut expected = vec![2; 32];
    expected.extend([1; 32]);
    same_bytes("the updated copy", &rig.get(target.id, 64)?, &expected)?;
    let mut expected = vec![3; 64];
    expected[16..32].fill(4);
    same_bytes("the updated fill", &rig.get(filled.id, 64)?, &expected)?;
    equal("the updated launch", rig.get_words(&word, 1)?, vec![8])
}

pub(super) fn update_leaves_queued_launches_alone(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let word = rig.words(1)?;
    let hosts = [rig.host(4)?, rig.host(4)?, rig.host(4)?];
    let value = rig.kernel("store_value")?;
    let arguments = |number: u32| Arguments::new().address(word.address).u32(number);
    let graph = rig.graph(&[GraphNode { command: store(value.id, &arguments(0)), after: &[] }])?;
    rig.busy(stream)?;
    for (number, host) in (1..).zip(&hosts) {
        rig.driver.update_graph(graph, 0, &store(value.id, &arguments(number)))?;
        rig.driver.submit(stream, &Command::Graph(graph))?;
        rig.driver.download(stream, word.id.into(), host, 4)?;
    }
    rig.driver.update_graph(graph, 0, &store(value.id, &arguments(99)))?;
    rig.driver.synchronize(stream)?;
    for (number, host) in (1u32..).zip(&hosts) {
        same_bytes("a run queued before the next update", &read_host(host)?, &number.to_le_bytes())?;
    }
    Ok(())
}

pub(super) fn cooperative(rig: &Rig<'_>) -> LawVerdict {
    let info = rig.driver.info();
    if !info.features.cooperative_launch {
        return inapplicable("the device has no cooperative launches");
    }
    let stream = rig.stream()?;
    let (first, second) = (rig.words(2)?, rig.words(2)?);
    let kernel = rig.kernel("meet")?;
    let per_multiprocessor = rig.driver.occupancy(kernel.id, 64, 0)?.blocks_per_multiprocessor;
    let most = info.limits.multiprocessors * per_multiprocessor;
    // As many blocks as fit, so that one that is kept waiting would keep all others waiting.
    let (all, fewer) = (
        Arguments::new().address(first.address).u32(most),
        Arguments::new().address(second.address).u32(most - 1),
    );
    let meet = |blocks, arguments| {
        Command::Launch(LaunchCommand { cooperative: true, ..plain_launch(kernel.id, blocks, 64, arguments) })
    };
    let graph = rig.graph(&[GraphNode { command: meet(most, &all), after: &[] }])?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("blocks that came and blocks that met all others", rig.get_words(&first, 2)?, vec![most; 2])?;
    rig.driver.update_graph(graph, 0, &meet(most - 1, &fewer))?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    equal("the same of the node that replaced it", rig.get_words(&second, 2)?, vec![most - 1; 2])
}

pub(super) fn update_refused(rig: &Rig<'_>) -> LawVerdict {
    let stream = rig.stream()?;
    let (memory, word) = (rig.memory_with(&[0; 64])?, rig.words(1)?);
    let event = rig.event()?;
    let value = rig.kernel("store_value")?;
    let five = Arguments::new().address(word.address).u32(5);
    let fill = Command::Fill { to: memory.id.into(), pattern: Pattern::U8(6), count: 64 };
    let launch = store(value.id, &five);
    let nodes = [GraphNode { command: fill, after: &[] }, GraphNode { command: launch, after: &[0] }];
    let graph = rig.graph(&nodes)?;
    refused_somehow("an update of node 2 of 2", rig.driver.update_graph(graph, 2, &fill))?;
    refused_somehow("an update of a node far away", rig.driver.update_graph(graph, u32::MAX, &fill))?;
    refused_somehow("a launch in place of a fill", rig.driver.update_graph(graph, 0, &launch))?;
    refused_somehow("a fill in place of a launch", rig.driver.update_graph(graph, 1, &fill))?;
    refused_somehow(
        "a copy in place of a fill",
        rig.driver.update_graph(graph, 0, &copy(&memory, &word, 4)),
    )?;
    refused_somehow(
        "a signal in place of a fill",
        rig.driver.update_graph(graph, 0, &Command::Signal(event)),
    )?;
    rig.driver.submit(stream, &Command::Graph(graph))?;
    rig.driver.synchronize(stream)?;
    same_bytes("the fill as it was", &rig.get(memory.id, 64)?, &[6; 64])?;
    equal("the launch as it was", rig.get_words(&word, 1)?, vec![5])
}

/// What CUDA cannot change in a node that is built, whatever else may change.
pub(super) fn update_keeps_the_shape(rig: &Rig<'_>) -> LawVerdict {
    let info = rig.driver.info();
    let stream = rig.stream()?;
    let (from, to, host) = (rig.memory_with(&[3; 64])?, rig.memory_with(&[0; 64])?, rig.host(64)?);
    let visited = rig.words(8 * 32)?;
    let visit = rig.kernel("visit")?;
    let arguments = Arguments::new().address(visited.address);
    let launch = |cooperative, cluster: Option<Dim3>| {
        Command::Launch(LaunchCommand { cooperative, cluster, ..plain_launch(visit.id, 8, 32, &arguments) })
    };
    let across = |bytes| copy(&from, &to, bytes);
    let down = Command::Copy { from: Place::Device(from.id.into()), to: host_at(&host, 0), bytes: 64 };
    let fill = |count| Command::Fill { to: to.id.into(), pattern: Pattern::U8(6), count };
    let mut pairs = vec![
        ("a copy to the host and one on the device", across(64), down),
        ("a copy of no bytes and one of some", across(64), across(0)),
        ("a fill of no bytes and one of some", fill(64), fill(0)),
    ];
    if info.features.cooperative_launch {
        pairs.push(("a plain launch and a cooperative one", launch(false, None), launch(true, None)));
    }
    if info.features.cluster_launch {
        let (two, one) = (launch(false, Some(2.into())), launch(false, Some(1.into())));
        pairs.push(("a launch and one in clusters", launch(false, None), two));
        pairs.push(("launches in clusters of two sizes", two, one));
    }
    let visits = pairs.iter().filter(|(_, one, _)| matches!(one, Command::Launch(_))).count() as u32 * 2;
    for (what, one, other) in pairs {
        for (built, replacement) in [(one, other), (other, one)] {
            let graph = rig.graph(&[GraphNode { command: built, after: &[] }])?;
            let updated = rig.driver.update_graph(graph, 0, &replacement);
            refused_somehow(format!("{what}, of which one replaces the other"), updated)?;
            rig.driver.update_graph(graph, 0, &built)?;
            rig.driver.submit(stream, &Command::Graph(graph))?;
        }
    }
    rig.driver.synchronize(stream)?;
    same_bytes("the fill as it was", &rig.get(to.id, 64)?, &[6; 64])?;
    same_bytes("the copy as it was", &read_host(&host)?, &[3; 64])?;
    equal("launches as they were", rig.get_words(&visited, 256)?, vec![visits; 256])
}
