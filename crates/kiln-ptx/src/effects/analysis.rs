//! The fixpoint: steps run until nothing changes.
//!
//! A function is analysed once per distinct combination of argument values, so that a helper called with two
//! pointers does not mix them up; past a limit its instances are merged into one. Registers and parameter variables
//! belong to an instance; local variables, shared memory and what is known about the kernel's parameters belong to
//! the whole. All of it only grows, and a budget bounds the work: when it is spent, the answer is "cannot tell".

use std::collections::HashMap;
use std::rc::Rc;

use super::decode::decode;
use super::origin::Origins;
use super::step::{Action, Code, Slot};
use super::value::{Place, Places, Value};
use super::variable_values::Cells;
use crate::call::Formal;
use crate::function::PtxFunctionId;
use crate::module::PtxModule;
use crate::variable::VariableId;

/// Evaluations allowed per step of every instance, before the analysis gives up; ordinary code takes about ten.
const MAX_EVALUATIONS_PER_STEP: u64 = 100;

/// Evaluations always allowed.
const MIN_EVALUATIONS: u64 = 100_000;

/// Evaluations never exceeded: a few seconds of work.
const MAX_EVALUATIONS: u64 = 20_000_000;

/// Instances of one function before they are merged.
const MAX_INSTANCES_PER_FUNCTION: usize = 24;

/// The number of an instance.
pub(super) type InstanceId = usize;

/// A function under analysis with certain arguments.
pub(super) struct Instance {
    pub(super) function: PtxFunctionId,
    pub(super) code: Rc<Code>,
    pub(super) values: Vec<Value>,
    /// Parameter variables: formals, results, and those of calls.
    pub(super) cells: Cells,
    /// Instances that call this one and must look again when its results change.
    pub(super) callers: Vec<InstanceId>,
    queue: Vec<u32>,
    queued: Vec<bool>,
}

/// The budget is spent.
pub(super) struct Spent;

/// The whole analysis of one entry.
pub(super) struct Analysis<'m> {
    pub(super) module: &'m PtxModule,
    pub(super) instances: Vec<Instance>,
    /// What local variables hold.
    pub(super) locals: Cells,
    /// What shared memory holds.
    pub(super) shared: Value,
    /// What was put where any pointer may be loaded from: addresses of local or shared variables, differences of pointers.
    pub(super) escaped: Origins,
    /// Parameter words that are pointers for certain.
    pub(super) evident: Origins,
    /// Every parameter word of the entry.
    pub(super) words: Origins,
    /// Stored through the address of another function's parameter: part of what such a parameter may hold.
    pub(super) foreign: Value,
    /// Whether anything instances share has changed, so that all must look again.
    pub(super) changed: bool,
    codes: HashMap<PtxFunctionId, Rc<Code>>,
    known: HashMap<(PtxFunctionId, Vec<Value>), InstanceId>,
    merged: HashMap<PtxFunctionId, InstanceId>,
    counts: HashMap<PtxFunctionId, usize>,
    evaluations: u64,
    allowed: u64,
}

impl<'m> Analysis<'m> {
    pub(super) fn new(module: &'m PtxModule, evident: Origins, words: Origins) -> Self {
        Self {
            module,
            instances: Vec::new(),
            locals: Cells::new(),
            shared: Value::UNSEEN,
            escaped: Origins::NONE,
            foreign: Value::UNSEEN,
            evident,
            words,
            changed: false,
            codes: HashMap::new(),
            known: HashMap::new(),
            merged: HashMap::new(),
            counts: HashMap::new(),
            evaluations: 0,
            allowed: MIN_EVALUATIONS,
        }
    }

    /// The origins that are pointers for certain.
    pub(super) fn pointers(&self) -> Origins {
        Origins::LOCAL | Origins::SHARED | Origins::MODULE | Origins::PARAMETER | self.evident
    }

    /// Starts with an instance of the entry whose parameter words hold `words`.
    pub(super) fn start(&mut self, entry: PtxFunctionId, words: &[(VariableId, i64, Value)]) {
        let id = self.add_instance(entry);
        if let Some(instance) = self.instances.get_mut(id) {
            for (variable, offset, value) in words {
                instance.store_parameter(Place { variable: *variable, offset: Some(*offset) }, 8, value);
            }
        }
    }

    /// Runs to the fixpoint.
    pub(super) fn run(&mut self) -> Result<(), Spent> {
        loop {
            self.changed = false;
            let mut next = 0;
            // Instances appear while others run.
            while next < self.instances.len() {
                self.run_instance(next)?;
                next += 1;
            }
            let waiting = self.instances.iter().any(|instance| !instance.queue.is_empty());
            if self.changed {
                self.instances.iter_mut().for_each(Instance::enqueue_shared);
            } else if !waiting && !self.settle_unseen() {
                return Ok(());
            }
        }
    }

    fn run_instance(&mut self, id: InstanceId) -> Result<(), Spent> {
        while let Some(step) = self.instances.get_mut(id).and_then(Instance::dequeue) {
            self.evaluations += 1;
            if self.evaluations > self.allowed.min(MAX_EVALUATIONS) {
                return Err(Spent);
            }
            let Some(code) = self.instances.get(id).map(|instance| instance.code.clone()) else { break };
            if let Some(step) = code.steps.get(step as usize) {
                self.evaluate(id, &step.action);
            }
        }
        Ok(())
    }

    /// A register assigned only from itself was never given a value; it counts as a number. True when there was one.
    fn settle_unseen(&mut self) -> bool {
        let mut any = false;
        for instance in &mut self.instances {
            let unseen: Vec<Slot> =
                (0..instance.values.len() as Slot).filter(|slot| !instance.value(*slot).defined).collect();
            for slot in unseen {
                any |= instance.assign(slot, &Value::plain());
            }
        }
        any
    }

    fn evaluate(&mut self, id: InstanceId, action: &Action) {
        match action {
            Action::Compute { operation, wide, to, from } => self.compute(id, *operation, *wide, *to, from),
            Action::Load { to, target, width } => self.load(id, *to, target, *width),
            Action::Store { target, width, from } => self.store(id, target, *width, *from),
            Action::Access { target, .. } => self.note_pointer(id, target),
            Action::Data { to, width } => self.assign(id, *to, &Value::data(*width)),
            Action::Allocate { to } => {
                self.assign(id, *to, &Value::pointer(Origins::LOCAL).certainly_pointer())
            }
            Action::Anywhere { touch, .. } if touch.writes => self.store_anywhere(8, &Value::data(8)),
            Action::Anywhere { .. } => {}
            Action::Call(call) => self.call(id, *call),
        }
    }

    pub(super) fn assign(&mut self, id: InstanceId, slot: Slot, value: &Value) {
        if let Some(instance) = self.instances.get_mut(id) {
            instance.assign(slot, value);
        }
    }

    /// The instance of `function` with these arguments, with `caller` among its callers.
    pub(super) fn instance(
        &mut self,
        function: PtxFunctionId,
        words: Vec<Value>,
        caller: InstanceId,
    ) -> InstanceId {
        let key = (function, words);
        let id = match self.known.get(&key) {
            Some(id) => *id,
            None => self.new_instance(key),
        };
        if let Some(instance) = self.instances.get_mut(id)
            && !instance.callers.contains(&caller)
        {
            instance.callers.push(caller);
        }
        id
    }

    fn new_instance(&mut self, key: (PtxFunctionId, Vec<Value>)) -> InstanceId {
        let function = key.0;
        let count = self.counts.entry(function).or_insert(0);
        *count += 1;
        if *count <= MAX_INSTANCES_PER_FUNCTION {
            let id = self.add_instance(function);
            self.bind_arguments(id, &key.1);
            self.known.insert(key, id);
            return id;
        }
        let id = match self.merged.get(&function) {
            Some(id) => *id,
            None => {
                let id = self.add_instance(function);
                self.merged.insert(function, id);
                id
            }
        };
        self.bind_arguments(id, &key.1);
        if let Some(instance) = self.instances.get_mut(id) {
            instance.enqueue_all();
        }
        self.known.insert(key, id);
        id
    }

    fn add_instance(&mut self, function: PtxFunctionId) -> InstanceId {
        let code = match self.codes.get(&function) {
            Some(code) => code.clone(),
            None => {
                let code =
                    self.module.function(function).map_or_else(Code::default, |f| decode(self.module, f));
                let code = Rc::new(code);
                self.codes.insert(function, code.clone());
                code
            }
        };
        self.allowed += MAX_EVALUATIONS_PER_STEP * code.steps.len() as u64;
        self.instances.push(Instance::new(function, code));
        self.instances.len() - 1
    }

    /// Gives the formals of an instance their values, word by word.
    fn bind_arguments(&mut self, id: InstanceId, words: &[Value]) {
        let Some(function) = self.instances.get(id).and_then(|i| self.module.function(i.function)) else {
            return;
        };
        let mut words = words.iter();
        for formal in &function.parameters {
            match *formal {
                Formal::Param(variable) => {
                    for word in 0..word_count(self.module, variable) {
                        let (Some(value), Some(instance)) = (words.next(), self.instances.get_mut(id)) else {
                            return;
                        };
                        instance.store_parameter(Place { variable, offset: Some(word * 8) }, 8, value);
                    }
                }
                Formal::Register(register) => {
                    let Some(value) = words.next() else { return };
                    let slot = self.instances.get(id).and_then(|instance| instance.code.find(register));
                    if let Some(slot) = slot {
                        self.assign(id, slot, value);
                    }
                }
            }
        }
    }
}

/// Words of a parameter variable that can hold values; a last part of a word counts as one.
pub(super) fn word_count(module: &PtxModule, variable: VariableId) -> i64 {
    /// Parameters end at 32,764 bytes; more words than that are never told apart.
    const MAX_WORDS: u64 = 4096;
    let bytes = module.variable(variable).map_or(0, |v| v.shape.size_bytes());
    bytes.div_ceil(8).min(MAX_WORDS) as i64
}

impl Instance {
    fn new(function: PtxFunctionId, code: Rc<Code>) -> Self {
        let mut values = vec![Value::UNSEEN; code.slot_count()];
        for slot in code.unassigned() {
            if let Some(value) = values.get_mut(slot as usize) {
                *value = Value::plain();
            }
        }
        let steps = code.steps.len();
        // The queue is taken from its end: start with the first step last.
        let queue = (0..steps as u32).rev().collect();
        let queued = vec![true; steps];
        Self { function, code, values, cells: Cells::new(), callers: Vec::new(), queue, queued }
    }

    pub(super) fn value(&self, slot: Slot) -> &Value {
        static UNSEEN: Value = Value::UNSEEN;
        self.values.get(slot as usize).unwrap_or(&UNSEEN)
    }

    pub(super) fn assign(&mut self, slot: Slot, value: &Value) -> bool {
        let changed = self.values.get_mut(slot as usize).is_some_and(|old| old.join(value));
        if changed {
            let code = self.code.clone();
            for step in code.readers(slot) {
                self.enqueue(*step);
            }
        }
        changed
    }

    pub(super) fn enqueue_all(&mut self) {
        for step in (0..self.code.steps.len() as u32).rev() {
            self.enqueue(step);
        }
    }

    /// Stores into a parameter variable of this instance; true when that changed anything.
    pub(super) fn store_parameter(&mut self, place: Place, width: u32, value: &Value) -> bool {
        let changed = self.cells.store(&Places::Few(vec![place]), width, value);
        if changed {
            let code = self.code.clone();
            code.variable_readers(place.variable).for_each(|step| self.enqueue(step));
        }
        changed
    }

    /// Has every call look again, because something it calls has new results.
    pub(super) fn enqueue_calls(&mut self) {
        let code = self.code.clone();
        code.calls.iter().for_each(|step| self.enqueue(*step));
    }

    /// Has every step look again whose result depends on what instances share: memory, and which parameter words are
    /// pointers.
    fn enqueue_shared(&mut self) {
        let code = self.code.clone();
        for (index, step) in code.steps.iter().enumerate().rev() {
            if step.action.depends_on_shared() {
                self.enqueue(index as u32);
            }
        }
    }

    fn enqueue(&mut self, step: u32) {
        if let Some(queued @ false) = self.queued.get_mut(step as usize) {
            *queued = true;
            self.queue.push(step);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        let step = self.queue.pop()?;
        if let Some(queued) = self.queued.get_mut(step as usize) {
            *queued = false;
        }
        Some(step)
    }
}
