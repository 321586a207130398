//! The live objects of a caller: created and not yet destroyed.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::command_operands::{Footprint, Name, Touch};
use super::order::Point;
use super::violation::LiveObject;
use crate::call::CallKind;
use crate::command::DeclaredSpan;
use crate::graph::GraphNode;
use crate::handle::{DeviceKey, FunctionId, GraphId, MemoryId, ModuleId, PagesId, ReservationId};
use crate::memory::Protection;

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    live: HashMap<Name, Made>,
    /// The newest generation seen of each slot; a handle that is not newer and not live is stale.
    newest: HashMap<(&'static str, DeviceKey, u32), u32>,
    page_bytes: HashMap<PagesId, u64>,
    reservations: HashMap<ReservationId, Mapped>,
    /// Where in which stream's order pool memory was born.
    births: HashMap<MemoryId, Point>,
    functions: HashMap<FunctionId, (ModuleId, Arc<str>)>,
    /// Objects by their first address, with their bytes; nothing unless launches are followed.
    addresses: Option<BTreeMap<u64, (u64, Name)>>,
    variables: HashMap<MemoryId, ModuleId>,
    graphs: HashMap<GraphId, Vec<Node>>,
}

#[derive(Debug)]
struct Made {
    by: CallKind,
    number: u64,
}

/// What is mapped into a reservation, by offset.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    pub(super) bytes: u64,
    pub(super) mappings: BTreeMap<u64, Mapping>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) bytes: u64,
    pub(super) protection: Protection,
}

/// A node of a graph.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) footprint: Footprint,
    pub(super) after: Vec<u32>,
}

impl Ledger {
    /// One that knows what lies at an address.
    pub(super) fn with_addresses() -> Self {
        Self { addresses: Some(BTreeMap::new()), ..Self::default() }
    }

    pub(super) fn has_addresses(&self) -> bool {
        self.addresses.is_some()
    }

    /// Says where an object begins.
    pub(super) fn set_address(&mut self, name: Name, address: u64, bytes: u64) {
        if let Some(addresses) = &mut self.addresses {
            addresses.insert(address, (bytes, name));
        }
    }

    /// What a launch may do to the object that it declared; nothing for memory that no object of this driver is.
    pub(super) fn touch_of(&self, span: &DeclaredSpan) -> Option<Touch> {
        let (start, (bytes, name)) = self.addresses.as_ref()?.range(..=span.address.0).next_back()?;
        let offset = span.address.0 - start;
        let end = offset.saturating_add(span.bytes).min(*bytes);
        (offset < end).then_some(Touch {
            name: *name,
            range: offset..end,
            access: span.access,
            is_within: true,
        })
    }

    pub(super) fn add(&mut self, name: Name, by: CallKind, number: u64) {
        self.see(name);
        self.live.insert(name, Made { by, number });
    }

    /// A handle exists, and need not be given back.
    fn see(&mut self, name: Name) {
        let (kind, device, slot, generation) = name.parts();
        let newest = self.newest.entry((kind, device, slot)).or_default();
        *newest = generation.max(*newest);
    }

    pub(super) fn remove(&mut self, name: Name) {
        self.live.remove(&name);
        if let Some(addresses) = &mut self.addresses {
            addresses.retain(|_, (_, known)| *known != name);
        }
        match name {
            Name::Reservation(id) => drop(self.reservations.remove(&id)),
            Name::Pages(id) => drop(self.page_bytes.remove(&id)),
            Name::Memory(id) => drop(self.births.remove(&id)),
            Name::Module(module) => {
                self.functions.retain(|_, (of, _)| *of != module);
                self.variables.retain(|_, of| *of != module);
            }
            Name::Graph(id) => drop(self.graphs.remove(&id)),
            Name::Host(_) | Name::Stream(_) | Name::Event(_) => {}
        }
    }

    /// Whether an object was seen under this handle, and is gone.
    pub(super) fn is_stale(&self, name: Name) -> bool {
        let (kind, device, slot, generation) = name.parts();
        let known = matches!(name, Name::Memory(id) if self.variables.contains_key(&id));
        let newest = self.newest.get(&(kind, device, slot));
        !known && !self.live.contains_key(&name) && newest.is_some_and(|newest| *newest >= generation)
    }

    /// What is left, in the order it was made.
    pub(super) fn live(&self) -> Vec<LiveObject> {
        let mut live: Vec<_> = self
            .live
            .iter()
            .map(|(name, made)| LiveObject {
                object: name.to_string(),
                made_by: made.by,
                number: made.number,
            })
            .collect();
        live.sort_by_key(|object| object.number);
        live
    }

    pub(super) fn set_page_bytes(&mut self, pages: PagesId, bytes: u64) {
        self.page_bytes.insert(pages, bytes);
    }

    pub(super) fn set_reserved(&mut self, reservation: ReservationId, bytes: u64) {
        self.reservations.insert(reservation, Mapped { bytes, ..Mapped::default() });
    }

    pub(super) fn map(
        &mut self,
        into: ReservationId,
        offset: u64,
        pages: &[PagesId],
        protection: Protection,
    ) {
        let sizes: Option<Vec<u64>> = pages.iter().map(|id| self.page_bytes.get(id).copied()).collect();
        let (Some(sizes), Some(mapped)) = (sizes, self.reservations.get_mut(&into)) else {
            // Pages from before the layer: nothing can be said of this reservation from here on.
            self.reservations.remove(&into);
            return;
        };
        let mut at = offset;
        for bytes in sizes {
            mapped.mappings.insert(at, Mapping { bytes, protection });
            at = at.saturating_add(bytes);
        }
    }

    pub(super) fn unmap(&mut self, from: ReservationId, offset: u64, bytes: u64) {
        if let Some(mapped) = self.reservations.get_mut(&from) {
            mapped.mappings.retain(|at, _| !(offset..offset.saturating_add(bytes)).contains(at));
        }
    }

    pub(super) fn protect(&mut self, id: ReservationId, offset: u64, bytes: u64, protection: Protection) {
        if let Some(mapped) = self.reservations.get_mut(&id) {
            let range = mapped.mappings.range_mut(offset..offset.saturating_add(bytes));
            range.for_each(|(_, mapping)| mapping.protection = protection);
        }
    }

    pub(super) fn mapped(&self, reservation: ReservationId) -> Option<&Mapped> {
        self.reservations.get(&reservation)
    }

    pub(super) fn set_birth(&mut self, memory: MemoryId, point: Point) {
        self.births.insert(memory, point);
    }

    pub(super) fn birth_of(&self, memory: MemoryId) -> Option<Point> {
        self.births.get(&memory).copied()
    }

    pub(super) fn set_function(&mut self, function: FunctionId, module: ModuleId, name: &str) {
        self.functions.insert(function, (module, name.into()));
    }

    pub(super) fn module_of(&self, function: FunctionId) -> Option<ModuleId> {
        self.functions.get(&function).map(|(module, _)| *module)
    }

    pub(super) fn kernel_of(&self, function: FunctionId) -> Option<Arc<str>> {
        self.functions.get(&function).map(|(_, name)| name.clone())
    }

    pub(super) fn set_variable(&mut self, memory: MemoryId, module: ModuleId) {
        self.see(Name::Memory(memory));
        self.variables.insert(memory, module);
    }

    pub(super) fn module_of_variable(&self, memory: MemoryId) -> Option<ModuleId> {
        self.variables.get(&memory).copied()
    }

    pub(super) fn set_nodes(&mut self, graph: GraphId, nodes: Vec<Node>) {
        self.graphs.insert(graph, nodes);
    }

    pub(super) fn set_node(&mut self, graph: GraphId, node: u32, footprint: Footprint) {
        if let Some(node) = self.graphs.get_mut(&graph).and_then(|nodes| nodes.get_mut(node as usize)) {
            node.footprint = footprint;
        }
    }

    pub(super) fn nodes_of(&self, graph: GraphId) -> &[Node] {
        self.graphs.get(&graph).map_or(&[], Vec::as_slice)
    }
}

impl Node {
    pub(super) fn of(node: &GraphNode<'_>, ledger: &Ledger) -> Self {
        Self { footprint: Footprint::of(&node.command, ledger), after: node.after.to_vec() }
    }
}

impl Mapped {
    /// Whether every byte of a range has pages behind it, and whether all of them may be written.
    pub(super) fn covers(&self, range: &Range<u64>) -> (bool, bool) {
        let mut at = range.start;
        let mut writable = true;
        while at < range.end {
            let below = self.mappings.range(..=at).next_back();
            match below {
                Some((start, mapping)) if start.saturating_add(mapping.bytes) > at => {
                    writable &= mapping.protection == Protection::ReadWrite;
                    at = start.saturating_add(mapping.bytes);
                }
                _ => return (false, false),
            }
        }
        (true, writable)
    }
}
