//! The rules themselves: what a call, about to be made, would break.

use super::command_operands::{Footprint, Name, Touch};
use super::live_objects::Node;
use super::order::Reach;
use super::pending_uses::{Use, named};
use super::state::State;
use super::violation::Rule;
use crate::call::Call;
use crate::command::{Base, Command, Place};
use crate::graph::{GraphNode, check_nodes};
use crate::handle::{EventId, MemoryId, Object, ReservationId, StreamId};
use crate::stream::WaitTarget;

/// A broken rule, before it is known which call it was.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) rule: Rule,
    pub(super) object: Name,
    pub(super) why: String,
}

/// Everything a call would break.
pub(super) fn examine(state: &State, call: &Call<'_>) -> Vec<Finding> {
    let mut findings = stale(state, call);
    match call {
        Call::Submit { stream, command } => submit(state, *stream, command, &mut findings),
        Call::Free { memory, stream: None } => taken_back(state, Name::Memory(*memory), &mut findings),
        Call::Free { memory, stream: Some(stream) } => pool_free(state, *memory, *stream, &mut findings),
        Call::Unmap { from, offset, bytes } => unmap(state, *from, *offset, *bytes, &mut findings),
        Call::Destroy { object } => destroy(state, *object, &mut findings),
        Call::BuildGraph { nodes } => graph(state, nodes, &mut findings),
        Call::Wait { target: WaitTarget::Event(event), .. } => never_signalled(state, *event, &mut findings),
        _ => {}
    }
    findings
}

fn stale(state: &State, call: &Call<'_>) -> Vec<Finding> {
    let names = match call {
        Call::Submit { stream, command } => {
            let mut names = Name::all_of(command);
            names.push(Name::Stream(*stream));
            names
        }
        Call::Map { into, pages, .. } => {
            let mut names: Vec<_> = pages.iter().map(|pages| Name::Pages(*pages)).collect();
            names.push(Name::Reservation(*into));
            names
        }
        Call::Unmap { from: reservation, .. } | Call::Protect { reservation, .. } => {
            vec![Name::Reservation(*reservation)]
        }
        Call::ExportPages { pages } => vec![Name::Pages(*pages)],
        Call::Free { memory, stream } => {
            let stream = stream.map(Name::Stream);
            [Name::Memory(*memory)].into_iter().chain(stream).collect()
        }
        Call::Wait { target: WaitTarget::Stream(stream), .. } | Call::Progress { stream } => {
            vec![Name::Stream(*stream)]
        }
        Call::Wait { target: WaitTarget::Event(event), .. } => vec![Name::Event(*event)],
        Call::Wait { target: WaitTarget::Findings, .. } => Vec::new(),
        Call::Elapsed { from, to } => vec![Name::Event(*from), Name::Event(*to)],
        Call::Function { module, .. } | Call::Global { module, .. } => vec![Name::Module(*module)],
        Call::UpdateGraph { graph, command, .. } => {
            let mut names = Name::all_of(command);
            names.push(Name::Graph(*graph));
            names
        }
        Call::BuildGraph { nodes } => nodes.iter().flat_map(|node| Name::all_of(&node.command)).collect(),
        Call::Destroy { object } | Call::Native { object } => vec![Name::from(*object)],
        _ => Vec::new(),
    };
    let stale = names.into_iter().filter(|name| state.ledger.is_stale(*name));
    stale.map(|object| Finding { rule: Rule::Stale, object, why: "its object is gone".into() }).collect()
}

fn submit(state: &State, stream: StreamId, command: &Command<'_>, findings: &mut Vec<Finding>) {
    overlap(command, findings);
    if let Command::Wait(event) = command {
        never_signalled(state, *event, findings);
    }
    let footprint = Footprint::of(command, &state.ledger);
    if footprint.touches.is_empty() {
        return;
    }
    let before = state.order.before(state.order.end_of(stream));
    let command = named(command.name(), footprint.kernel.as_deref());
    for touch in &footprint.touches {
        if !touch.is_within {
            mapped(state, touch, findings);
        }
        unordered(state, touch, (stream, &command), &before, findings);
        if let Name::Memory(memory) = touch.name {
            born(state, memory, stream, &before, findings);
        }
    }
}

fn overlap(command: &Command<'_>, findings: &mut Vec<Finding>) {
    let Command::Copy { from, to, bytes } = command else { return };
    let (object, from, to) = match (from, to) {
        (Place::Device(from), Place::Device(to)) if from.base == to.base => {
            let object = match from.base {
                Base::Memory(id) => Name::Memory(id),
                Base::Reservation(id) => Name::Reservation(id),
            };
            (object, from.offset, to.offset)
        }
        (Place::Host { block, offset: from }, Place::Host { block: other, offset: to }) if block == other => {
            (Name::Host(*block), *from, *to)
        }
        _ => return,
    };
    if from.abs_diff(to) < *bytes {
        let why = format!("{bytes} bytes from {from} to {to} overlap");
        findings.push(Finding { rule: Rule::Overlap, object, why });
    }
}

fn mapped(state: &State, touch: &Touch, findings: &mut Vec<Finding>) {
    let Name::Reservation(reservation) = touch.name else { return };
    let Some(mapped) = state.ledger.mapped(reservation) else { return };
    if touch.range.end > mapped.bytes {
        return; // Past the end is for the driver to refuse.
    }
    let range = format!("bytes {}..{}", touch.range.start, touch.range.end);
    match mapped.covers(&touch.range) {
        (false, _) => {
            let why = format!("{range} are not all mapped");
            findings.push(Finding { rule: Rule::Unmapped, object: touch.name, why });
        }
        (true, false) if touch.access.writes() => {
            let why = format!("{range} are mapped for reading and would be written");
            findings.push(Finding { rule: Rule::ReadOnly, object: touch.name, why });
        }
        (true, _) => {}
    }
}

fn unordered(
    state: &State,
    touch: &Touch,
    (stream, command): (StreamId, &str),
    before: &Reach,
    findings: &mut Vec<Finding>,
) {
    let conflicts = state.uses.open(touch.name, &state.order).filter(|used| {
        used.point.stream != stream
            && !before.covers(used.point)
            && used.touch.as_ref().is_some_and(|other| other.conflicts(touch))
    });
    let is_certain = |used: &&Use| used.touch.as_ref().is_some_and(|other| other.shares_for_certain(touch));
    let conflicts: Vec<&Use> = conflicts.collect();
    let certain = conflicts.iter().copied().find(is_certain);
    let rule = if certain.is_some() { Rule::Unordered } else { Rule::MayBeUnordered };
    if let Some(used) = certain.or(conflicts.first().copied()) {
        let mut why = format!("{}, and nothing orders {stream} after it", used.describe());
        if touch.is_within {
            why.push_str(&format!(", where a {command} {}", touch.describe()));
        }
        findings.push(Finding { rule, object: touch.name, why });
    }
}

fn born(state: &State, memory: MemoryId, stream: StreamId, before: &Reach, findings: &mut Vec<Finding>) {
    let Some(birth) = state.ledger.birth_of(memory) else { return };
    if birth.stream != stream && !before.covers(birth) && !state.order.is_done(birth) {
        let why =
            format!("it was allocated in the order of {}, and {stream} is not after that", birth.stream);
        findings.push(Finding { rule: Rule::PoolOrder, object: Name::Memory(memory), why });
    }
}

fn pool_free(state: &State, memory: MemoryId, stream: StreamId, findings: &mut Vec<Finding>) {
    let before = state.order.before(state.order.end_of(stream));
    born(state, memory, stream, &before, findings);
    let name = Name::Memory(memory);
    let late = state
        .uses
        .open(name, &state.order)
        .find(|used| used.point.stream != stream && !before.covers(used.point));
    if let Some(used) = late {
        let why = format!("{}, and its free on {stream} is not ordered after that", used.describe());
        findings.push(Finding { rule: Rule::PoolOrder, object: name, why });
    }
}

fn taken_back(state: &State, name: Name, findings: &mut Vec<Finding>) {
    if let Some(used) = state.uses.open(name, &state.order).next() {
        let why = format!("{} and is not known to be done", used.describe());
        findings.push(Finding { rule: Rule::UsedWhenTakenBack, object: name, why });
    }
}

fn unmap(state: &State, from: ReservationId, offset: u64, bytes: u64, findings: &mut Vec<Finding>) {
    let name = Name::Reservation(from);
    let end = offset.saturating_add(bytes);
    let used = state.uses.open(name, &state.order).find(|used| {
        used.touch.as_ref().is_some_and(|touch| touch.range.start < end && offset < touch.range.end)
    });
    if let Some(used) = used {
        let why = format!("{} and is not known to be done", used.describe());
        findings.push(Finding { rule: Rule::UsedWhenTakenBack, object: name, why });
    }
}

fn destroy(state: &State, object: Object, findings: &mut Vec<Finding>) {
    match object {
        // Work queued on a stream still runs, pages live on while they are mapped, and a reservation with pages in it is
        // for the driver to refuse.
        Object::Stream(_) | Object::Pages(_) | Object::Reservation(_) => {}
        Object::Host(_) | Object::Event(_) | Object::Module(_) | Object::Graph(_) => {
            taken_back(state, Name::from(object), findings);
        }
    }
}

fn never_signalled(state: &State, event: EventId, findings: &mut Vec<Finding>) {
    let object = Name::Event(event);
    if state.order.signal_of(event).is_none() && !state.ledger.is_stale(object) {
        let why = "it was never signalled, so this waits for nothing".into();
        findings.push(Finding { rule: Rule::NeverSignalled, object, why });
    }
}

fn graph(state: &State, nodes: &[GraphNode<'_>], findings: &mut Vec<Finding>) {
    if check_nodes(nodes).is_err() {
        return; // For the driver to refuse.
    }
    for node in nodes {
        overlap(&node.command, findings);
    }
    let nodes: Vec<Node> = nodes.iter().map(|node| Node::of(node, &state.ledger)).collect();
    unordered_nodes(&nodes, findings);
}

/// Pairs of nodes that conflict with no path between them.
pub(super) fn unordered_nodes(nodes: &[Node], findings: &mut Vec<Finding>) {
    let mut ancestors: Vec<Vec<bool>> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let mut before = vec![false; at];
        for edge in node.after.iter().map(|edge| *edge as usize).filter(|edge| *edge < at) {
            before[edge] = true;
            for (to, from) in before.iter_mut().zip(&ancestors[edge]) {
                *to |= from;
            }
        }
        for (earlier, _) in before.iter().enumerate().filter(|(_, ordered)| !**ordered) {
            let touches = &nodes[earlier].footprint.touches;
            let conflicts: Vec<(&Touch, bool)> = touches
                .iter()
                .flat_map(|one| node.footprint.touches.iter().map(move |two| (one, two)))
                .filter(|(one, two)| one.conflicts(two))
                .map(|(one, two)| (one, one.shares_for_certain(two)))
                .collect();
            if let Some((touch, _)) = conflicts.iter().find(|(_, is_certain)| *is_certain) {
                let why = format!("nodes {earlier} and {at} both touch it and no edge orders them");
                findings.push(Finding { rule: Rule::UnorderedNodes, object: touch.name, why });
            } else if let Some((touch, _)) = conflicts.first() {
                let why = format!(
                    "nodes {earlier} and {at} may touch the same bytes of it and no edge orders them"
                );
                findings.push(Finding { rule: Rule::MayBeUnordered, object: touch.name, why });
            }
        }
        ancestors.push(before);
    }
}
