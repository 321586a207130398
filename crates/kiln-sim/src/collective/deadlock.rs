//! Ranks that wait for ranks that do not come: who waits for whom, in words.

use std::collections::BTreeSet;
use std::sync::Arc;

use kiln_driver::{Code, Fault as Loss};

use crate::check::access_origin::Mark;
use crate::check::finding::FindingKind;
use crate::collective::collective_launch::{CollectiveRun, Phase};
use crate::collective::communicator::{MeetingPlace, MemberState, SimCommunicator};
use crate::schedule::machine_state::State;

/// A launch that waits for other ranks.
#[derive(Clone, Debug)]
pub(crate) struct Stalled {
    pub(crate) device: u32,
    pub(crate) mark: Arc<Mark>,
    pub(crate) run: CollectiveRun,
}

/// What to do about ranks that do not come.
const NEXT: &str =
    "let each of these ranks call it before it drops its communicator or shuts down its device";
/// What to do about ranks that have all called, each behind work that waits for another one.
const NEXT_IN_CIRCLE: &str = "queue the calls of all communicators in the same order on each rank, and put sends and receives that cross into one call";
/// How many ranks that are waited for are named.
const NAMED_RANKS: usize = 8;

impl State {
    /// Launches that have read what they bring and wait for other ranks, or for earlier launches of their communicator.
    pub(crate) fn stalled(&self) -> Vec<Stalled> {
        let waiting = self.candidates().into_iter().filter(|ready| self.waits_for_ranks(*ready));
        waiting
            .filter_map(|ready| {
                let (device, mark) = self.mark_of(ready)?;
                Some(Stalled { device, mark, run: self.collective_run(ready)?.clone() })
            })
            .collect()
    }

    /// Ends launches that need a rank which was unloaded or given up. True if there are any.
    pub(crate) fn end_hopeless(&mut self, stalled: &[Stalled]) -> bool {
        let needs_gone = |one: &&Stalled| {
            let communicator = self.communicators.get(&one.run.call.rank.id);
            communicator.is_some_and(|communicator| {
                let waits_in_vain = |place: &MeetingPlace| {
                    communicator.missing(*place).into_iter().any(|rank| communicator.is_gone(rank, *place))
                };
                one.run.phase == Phase::Arrived
                    && !communicator.is_failing()
                    && one.run.places.iter().any(waits_in_vain)
            })
        };
        let hopeless: Vec<Stalled> = stalled.iter().filter(needs_gone).cloned().collect();
        if hopeless.is_empty() {
            return false;
        }
        let text = self.waiting_text(&hopeless);
        self.end_waiting(&hopeless, true, Code::LAUNCH_FAILED, text);
        true
    }

    /// Ends all launches that wait, since none of them can go on.
    pub(crate) fn end_deadlock(&mut self, stalled: &[Stalled]) {
        let text = self.waiting_text(stalled);
        let is_failing = |one: &Stalled| {
            self.communicators.get(&one.run.call.rank.id).is_some_and(SimCommunicator::is_failing)
        };
        let is_mistake = !stalled.iter().any(is_failing);
        self.end_waiting(stalled, is_mistake, Code::LAUNCH_TIMEOUT, text);
    }

    fn end_waiting(&mut self, stalled: &[Stalled], is_mistake: bool, code: Code, text: String) {
        if let (true, Some(first)) = (is_mistake, stalled.first()) {
            let actor = first.mark.actor.clone();
            let kind = FindingKind::CollectiveDeadlock;
            self.find_object(kind, first.device, text.clone(), Some(&actor), None);
        }
        let mut told = BTreeSet::new();
        for Stalled { device, mark, .. } in stalled {
            if told.insert(*device) {
                let loss = Loss { code, detail: text.clone() };
                self.lose(*device, loss, Some(&mark.actor.clone()));
            }
        }
    }

    /// Who waits in what for whom, and where each of them called it.
    fn waiting_text(&self, stalled: &[Stalled]) -> String {
        let mut sentences = Vec::new();
        for one in stalled {
            let rank = &one.run.call.rank;
            let Some(communicator) = self.communicators.get(&rank.id) else { continue };
            let line = one.run.line.map_or_else(String::new, |line| format!(", called at {line}"));
            let (number, communicator_name, device) = (rank.rank, rank.id.short(), one.device);
            let who = format!("rank {number} of communicator {communicator_name} (device {device}{line})");
            for (called, place) in one.run.call.descriptions.iter().zip(&one.run.places) {
                let missing = communicator.missing(*place);
                let number = match place {
                    MeetingPlace::All(number) => format!("collective {number}, {called},"),
                    MeetingPlace::Pair { number, .. } => format!("transfer {number}, {called},"),
                };
                if one.run.phase == Phase::Queued {
                    sentences.push(format!("{who} has queued {number} behind an earlier one"));
                } else if !missing.is_empty() {
                    let named = missing.iter().take(NAMED_RANKS);
                    let mut whom: Vec<_> =
                        named.map(|rank| missing_text(communicator, *rank, *place)).collect();
                    if missing.len() > NAMED_RANKS {
                        whom.push(format!("{} others", missing.len() - NAMED_RANKS));
                    }
                    sentences.push(format!("{who} waits in {number} for {}", whom.join(" and ")));
                }
            }
        }
        let next = if self.is_circle(stalled) { NEXT_IN_CIRCLE } else { NEXT };
        format!("{}; {next}", sentences.join("; "))
    }

    /// Whether every rank that is waited for is there and has called what it is waited for in.
    fn is_circle(&self, stalled: &[Stalled]) -> bool {
        let has_come = |communicator: &SimCommunicator, rank: u32, place: MeetingPlace| {
            let is_there = communicator
                .member(rank)
                .is_some_and(|member| matches!(member.state, MemberState::Loaded { .. }));
            is_there && communicator.has_called(rank, place)
        };
        stalled.iter().filter(|one| one.run.phase != Phase::Queued).all(|one| {
            self.communicators.get(&one.run.call.rank.id).is_some_and(|communicator| {
                let came = |place: &MeetingPlace| {
                    communicator.missing(*place).into_iter().all(|rank| has_come(communicator, rank, *place))
                };
                one.run.places.iter().all(came)
            })
        })
    }
}

fn missing_text(communicator: &SimCommunicator, rank: u32, place: MeetingPlace) -> String {
    let has_called = communicator.has_called(rank, place);
    let member = communicator.member(rank);
    let refused = member.filter(|_| !has_called).map(|member| &member.refused[..]).unwrap_or_default();
    let refused = refused.iter().find(|(at, _)| *at == place).map(|(_, said)| format!("which {said}"));
    let why = match member.map(|member| &member.state) {
        Some(_) if communicator.is_gone(rank, place) => {
            let left = "has dropped its communicator or shut down its device";
            refused.map_or_else(|| format!("which {left}"), |refused| format!("{refused}, and {left}"))
        }
        Some(MemberState::Loaded { .. }) if has_called => "which has queued it behind other work".to_owned(),
        Some(MemberState::Loaded { .. } | MemberState::Left { .. }) => {
            refused.unwrap_or_else(|| "which has not called it".to_owned())
        }
        Some(MemberState::Lost { why, .. }) => format!("which is lost: {why}"),
        Some(MemberState::Absent) | None => "which was never loaded".to_owned(),
    };
    format!("rank {rank}, {why}")
}
