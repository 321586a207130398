//! How a graph of operations is run: engines that cuDNN proposes, and the first of them whose results and workspace are allowed.

use std::mem::ManuallyDrop;

use kiln_driver::{Error, Refusal, Result};
use kiln_operation::{Determinism, ElementType, Math};

use super::DnnHandle;
use super::descriptor::{Descriptor, DnnResult};
use super::enum_values::{Named, attribute, attribute_type, descriptor_type, heuristic, note};
use crate::libraries::LibraryKind;

/// There are fewer kinds of notes.
const NOTES_LIMIT: usize = 32;
/// Engines whose results differ from sums of products by more than the tolerance of an operation.
const INEXACT: [Named; 6] = [
    note::REDUCED_PRECISION_REDUCTION,
    note::FFT,
    note::WINOGRAD,
    note::WINOGRAD_TILE_4X4,
    note::WINOGRAD_TILE_6X6,
    note::WINOGRAD_TILE_13X13,
];

/// What an engine may do.
#[derive(Clone, Copy)]
pub(super) struct EngineRules {
    pub(super) element: ElementType,
    pub(super) math: Math,
    pub(super) order: Determinism,
    pub(super) workspace_limit_bytes: u64,
}

/// A graph with its engine, ready to be executed.
pub(super) struct ExecutionPlan {
    pub(super) plan: Descriptor,
    pub(super) workspace_bytes: u64,
    /// What the plan was made of.
    parts: Vec<Descriptor>,
}

impl EngineRules {
    /// Why an engine with these notes is not used, if so.
    fn refusal(&self, notes: &[i32]) -> Option<&'static str> {
        let has = |note: &Named| notes.contains(&note.number);
        let forbidden = INEXACT.iter().find(|note| has(note));
        let single = self.element == ElementType::F32;
        forbidden
            .or((self.order == Determinism::RunToRun && has(&note::NONDETERMINISTIC))
                .then_some(&note::NONDETERMINISTIC))
            .or((single && has(&note::DOWN_CONVERT_INPUTS)).then_some(&note::DOWN_CONVERT_INPUTS))
            .or((single && self.math == Math::Ieee && has(&note::TENSOR_CORE)).then_some(&note::TENSOR_CORE))
            .map(|note| note.name)
    }
}

impl ExecutionPlan {
    /// Looks for an engine. Proposals of the heuristics come first, then engines for everything else.
    pub(super) fn search(
        call: &'static str,
        handle: &DnnHandle,
        operations: Vec<Descriptor>,
        mut parts: Vec<Descriptor>,
        rules: EngineRules,
        text: &str,
    ) -> Result<Self> {
        let graph = operation_graph(handle, &operations).map_err(|failure| failure.error(call, text))?;
        let mut refused = Refusals::default();
        for mode in [heuristic::HEUR_MODE_A, heuristic::HEUR_MODE_FALLBACK] {
            let proposed = match proposals(handle, &graph, mode) {
                Ok(proposed) => proposed,
                Err(failure) => {
                    refused.add(format!("{}: {}", mode.name, failure.words()));
                    continue;
                }
            };
            for config in proposed {
                match Self::of(handle, &config, rules) {
                    Ok(Ok((plan, workspace_bytes))) => {
                        parts.extend(operations);
                        parts.extend([graph, config]);
                        return Ok(Self { plan, workspace_bytes, parts });
                    }
                    Ok(Err(why)) => refused.add(why),
                    Err(failure) => refused.add(failure.words()),
                }
            }
        }
        let why = format!(
            "it has no engine on this device for `{text}`: {refused}; use another layout or type, Determinism::Any, or more workspace"
        );
        Err(Error::refused(call, Refusal::Library { library: LibraryKind::Cudnn.name(), why }))
    }

    /// The plan of one proposal with its workspace, or why it is not used.
    #[allow(clippy::type_complexity, reason = "a failure of the library, or a reason")]
    fn of(
        handle: &DnnHandle,
        config: &Descriptor,
        rules: EngineRules,
    ) -> DnnResult<std::result::Result<(Descriptor, u64), String>> {
        let engine = Descriptor::new(handle.api, descriptor_type::ENGINE)?;
        let engines = [engine];
        config.fill(attribute::ENGINECFG_ENGINE, &engines)?;
        let [engine] = engines;
        let notes =
            engine.numbers(attribute::ENGINE_NUMERICAL_NOTE, attribute_type::NUMERICAL_NOTE, NOTES_LIMIT)?;
        let index = engine.integer(attribute::ENGINE_GLOBAL_INDEX)?;
        if let Some(name) = rules.refusal(&notes) {
            return Ok(Err(format!("engine {index} is {name}")));
        }
        let plan = Descriptor::new(handle.api, descriptor_type::EXECUTION_PLAN)?;
        plan.set_handle(attribute::EXECUTION_PLAN_HANDLE, handle.raw.raw())?;
        plan.set_descriptor(attribute::EXECUTION_PLAN_ENGINE_CONFIG, config)?;
        let plan = plan.finalize()?;
        let bytes = plan.integer(attribute::EXECUTION_PLAN_WORKSPACE_SIZE)?;
        let bytes = u64::try_from(bytes).unwrap_or(0);
        if bytes > rules.workspace_limit_bytes {
            return Ok(Err(format!("engine {index} takes {bytes} bytes of workspace")));
        }
        Ok(Ok((plan, bytes)))
    }

    /// Everything that it owns, to be destroyed when the device is idle.
    pub(super) fn into_descriptors(self) -> ManuallyDrop<Vec<Descriptor>> {
        let mut all = vec![self.plan];
        // What was made last is destroyed first.
        all.extend(self.parts.into_iter().rev());
        ManuallyDrop::new(all)
    }
}

/// Why proposals were not used.
#[derive(Default)]
struct Refusals {
    count: usize,
    first: Vec<String>,
}

/// So many reasons are told.
const REASONS_LIMIT: usize = 8;

impl Refusals {
    fn add(&mut self, why: String) {
        self.count += 1;
        if self.first.len() < REASONS_LIMIT && !self.first.contains(&why) {
            self.first.push(why);
        }
    }
}

impl std::fmt::Display for Refusals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.count {
            0 => f.write_str("it proposes none"),
            count => write!(f, "{count} proposals are not usable ({})", self.first.join("; ")),
        }
    }
}

fn operation_graph(handle: &DnnHandle, operations: &[Descriptor]) -> DnnResult<Descriptor> {
    let graph = Descriptor::new(handle.api, descriptor_type::OPERATIONGRAPH)?;
    graph.set_descriptors(attribute::OPERATIONGRAPH_OPS, operations)?;
    graph.set_handle(attribute::OPERATIONGRAPH_HANDLE, handle.raw.raw())?;
    graph.finalize()
}

/// The engines that cuDNN proposes, the one that it expects to be the fastest first.
fn proposals(handle: &DnnHandle, graph: &Descriptor, mode: Named) -> DnnResult<Vec<Descriptor>> {
    let heuristics = Descriptor::new(handle.api, descriptor_type::ENGINEHEUR)?;
    heuristics.set_descriptor(attribute::ENGINEHEUR_OPERATION_GRAPH, graph)?;
    heuristics.set_number(attribute::ENGINEHEUR_MODE, attribute_type::HEUR_MODE, mode.number)?;
    let heuristics = heuristics.finalize()?;
    let count = heuristics.count(attribute::ENGINEHEUR_RESULTS)?;
    let mut configs = Vec::with_capacity(count);
    for _ in 0..count {
        configs.push(Descriptor::new(handle.api, descriptor_type::ENGINECFG)?);
    }
    if count > 0 {
        let found = heuristics.fill(attribute::ENGINEHEUR_RESULTS, &configs)?;
        configs.truncate(found);
    }
    Ok(configs)
}
