//! The state of the checking layer: live objects, queued work, and what is known to be done.

use std::collections::HashMap;
use std::thread::ThreadId;

use super::command_operands::{Footprint, Name};
use super::live_objects::{Ledger, Node};
use super::order::{Order, Point};
use super::pending_uses::Uses;
use super::rules::{Finding, unordered_nodes};
use super::violation::Violation;
use crate::call::{Answer, Call};
use crate::command::{Command, Submission};
use crate::handle::{Object, StreamId};
use crate::memory::MemoryRequest;
use crate::stream::{Health, WaitTarget};

/// Everything the layer knows.
#[derive(Default)]
pub(super) struct State {
    pub(super) calls: u64,
    pub(super) lost: bool,
    pub(super) order: Order,
    pub(super) ledger: Ledger,
    pub(super) uses: Uses,
    /// Calls that were seen going down and not yet coming back; a thread makes one at a time.
    pub(super) underway: HashMap<ThreadId, Underway>,
    pub(super) violations: Vec<Violation>,
}

pub(super) struct Underway {
    pub(super) number: u64,
    pub(super) findings: Vec<Finding>,
    /// What the call refers to, as it was when the call began: what it waits for, or where it stands.
    pub(super) point: Option<Point>,
}

impl State {
    /// What a call refers to at the moment it begins.
    pub(super) fn reference(&self, call: &Call<'_>) -> Option<Point> {
        match call {
            Call::Wait { target: WaitTarget::Event(event), .. } => self.order.signal_of(*event),
            Call::Submit { command: Command::Wait(event), .. } => self.order.signal_of(*event),
            Call::Wait { target: WaitTarget::Stream(stream), .. } => Some(self.order.end_of(*stream)),
            Call::Allocate { request: MemoryRequest::Pool { stream, .. } } => {
                Some(self.order.end_of(*stream))
            }
            _ => None,
        }
    }

    pub(super) fn report(&mut self, call: &Call<'_>, number: u64, findings: Vec<Finding>) {
        self.violations.extend(findings.into_iter().map(|finding| Violation {
            rule: finding.rule,
            call: call.kind(),
            number,
            object: finding.object.to_string(),
            why: finding.why,
        }));
    }

    /// Takes note of a call that was made.
    pub(super) fn note(&mut self, call: &Call<'_>, answer: &Answer<'_>, number: u64, point: Option<Point>) {
        if let Some(name) = name_made(call, answer) {
            self.ledger.add(name, call.kind(), number);
        }
        match (call, answer) {
            (Call::Submit { stream, command }, Answer::Submission(submission)) => {
                self.note_submission(*stream, command, *submission, point);
            }
            (Call::Wait { .. }, Answer::Waited(waited)) if waited.is_done() => {
                if let Some(point) = point {
                    self.order.host_saw(point);
                }
            }
            (Call::Progress { stream }, Answer::Progress(progress)) => {
                self.order.host_saw(Point::of(*stream, progress.completed));
            }
            (Call::Health, Answer::Health(Health::Lost(_))) => self.lost = true,
            (Call::CreatePages { request }, Answer::Pages(pages)) => {
                self.ledger.set_page_bytes(*pages, request.bytes);
            }
            (Call::ImportPages { bytes }, Answer::Pages(pages)) => self.ledger.set_page_bytes(*pages, *bytes),
            (Call::Reserve { .. }, Answer::Reservation(made)) => {
                self.ledger.set_reserved(made.id, made.bytes);
                self.ledger.set_address(Name::Reservation(made.id), made.address.0, made.bytes);
            }
            (Call::CreateStream { .. }, Answer::Stream(stream)) => self.order.opened(*stream),
            (Call::Map { into, offset, pages, protection }, _) => {
                self.ledger.map(*into, *offset, pages, *protection);
            }
            (Call::Unmap { from, offset, bytes }, _) => self.ledger.unmap(*from, *offset, *bytes),
            (Call::Protect { reservation, offset, bytes, protection }, _) => {
                self.ledger.protect(*reservation, *offset, *bytes, *protection);
            }
            (Call::Allocate { .. }, Answer::Memory(memory)) => {
                self.ledger.set_address(Name::Memory(memory.id), memory.address.0, memory.bytes);
                if let Some(point) = point {
                    self.ledger.set_birth(memory.id, point);
                }
            }
            (Call::Function { module, name }, Answer::Function(made)) => {
                self.ledger.set_function(made.id, *module, name);
            }
            (Call::Global { module, .. }, Answer::Memory(memory)) => {
                self.ledger.set_address(Name::Memory(memory.id), memory.address.0, memory.bytes);
                self.ledger.set_variable(memory.id, *module);
            }
            (Call::BuildGraph { nodes }, Answer::Graph(graph)) => {
                let nodes = nodes.iter().map(|node| Node::of(node, &self.ledger)).collect();
                self.ledger.set_nodes(*graph, nodes);
            }
            (Call::UpdateGraph { graph, node, command }, _) => {
                let footprint = Footprint::of(command, &self.ledger);
                self.ledger.set_node(*graph, *node, footprint);
                let mut findings = Vec::new();
                unordered_nodes(self.ledger.nodes_of(*graph), &mut findings);
                self.report(call, number, findings);
            }
            (Call::Free { memory, .. }, _) => self.forget(Name::Memory(*memory)),
            (Call::Destroy { object }, _) => self.note_destroyed(*object),
            _ => {}
        }
    }

    fn note_submission(
        &mut self,
        stream: StreamId,
        command: &Command<'_>,
        submission: Submission,
        point: Option<Point>,
    ) {
        let here = Point::of(stream, submission);
        self.order.submitted(stream, submission);
        match (command, point) {
            (Command::Signal(event), _) => self.order.signalled(*event, here),
            (Command::Wait(event), Some(signal)) => {
                self.order.joined(stream, submission, signal);
                // Once the signal is done the wait holds nothing back, whether or not it was reached.
                self.uses.hold(Name::Event(*event), signal, command.name());
            }
            _ => {
                let footprint = Footprint::of(command, &self.ledger);
                self.uses.note(&footprint, here, command.name(), &self.order);
            }
        }
    }

    fn note_destroyed(&mut self, object: Object) {
        match object {
            Object::Stream(stream) => self.order.forget_stream(stream),
            Object::Event(event) => self.order.forget_event(event),
            _ => {}
        }
        self.forget(Name::from(object));
    }

    fn forget(&mut self, name: Name) {
        self.ledger.remove(name);
        self.uses.forget(name);
    }
}

/// The object a call made, if its caller has to take it back.
fn name_made(call: &Call<'_>, answer: &Answer<'_>) -> Option<Name> {
    match answer {
        // A variable goes with its module.
        Answer::Memory(_) if matches!(call, Call::Global { .. }) => None,
        Answer::Reservation(made) => Some(Name::Reservation(made.id)),
        Answer::Pages(id) => Some(Name::Pages(*id)),
        Answer::Memory(made) => Some(Name::Memory(made.id)),
        Answer::Host(made) => Some(Name::Host(made.id())),
        Answer::Stream(id) => Some(Name::Stream(*id)),
        Answer::Event(id) => Some(Name::Event(*id)),
        Answer::Module(id) => Some(Name::Module(*id)),
        Answer::Graph(id) => Some(Name::Graph(*id)),
        _ => None,
    }
}
