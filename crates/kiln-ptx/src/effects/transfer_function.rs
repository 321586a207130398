//! The transfer function of the analysis: how one step changes the known values.

use super::analysis::{Analysis, InstanceId};
use super::origin::Origins;
use super::step::{Operation, Reach, Slot, Source, Target};
use super::value::{Place, Places, Value};
use super::variable_values::stored_value;
use crate::call::Formal;
use crate::function::PtxFunctionId;
use crate::state_space::Space;
use crate::variable::VariableId;

impl Analysis<'_> {
    /// The value of a source; unseen when its register is.
    pub(super) fn resolve(&self, id: InstanceId, source: Source) -> Value {
        match source {
            Source::Register(slot) => self.instances.get(id).map_or(Value::UNSEEN, |i| i.value(slot).clone()),
            Source::Address(variable, offset) => self.address_of(variable, offset),
            Source::Constant(number) => Value::constant(number),
            Source::Plain => Value::plain(),
            Source::Module => Value::pointer(Origins::MODULE),
            Source::Unknown => Value::pointer(Origins::UNKNOWN),
        }
    }

    fn address_of(&self, variable: VariableId, offset: i64) -> Value {
        let origin = match self.module.variable(variable).map(|v| v.space.base()) {
            Some(Space::Local) => Origins::LOCAL,
            Some(Space::Shared | Space::SharedCluster) => Origins::SHARED,
            Some(Space::Param) => Origins::PARAMETER,
            _ => Origins::MODULE,
        };
        Value::address(origin, variable, offset)
    }

    /// The value of an address operand with its offset added.
    pub(super) fn resolve_target(&self, id: InstanceId, target: &Target) -> Value {
        let base = self.resolve(id, target.base);
        if !base.defined || target.offset == 0 {
            return base;
        }
        base.sum(&Value::constant(target.offset), false, self.pointers())
    }

    pub(super) fn compute(
        &mut self,
        id: InstanceId,
        operation: Operation,
        wide: bool,
        to: Slot,
        from: &[Source],
    ) {
        let values: Vec<Value> = from.iter().map(|source| self.resolve(id, *source)).collect();
        // A choice is known as soon as one of its operands is; anything else waits for all.
        if operation != Operation::Choose && values.iter().any(|value| !value.defined) {
            return;
        }
        if matches!(operation, Operation::Convert | Operation::ConvertShared) {
            let pointed = values.iter().fold(Origins::NONE, |all, value| all | value.base);
            self.note_words(pointed);
        }
        let mut result = self.apply(operation, wide, &values);
        if !wide {
            result.definite = false;
            result.constant = None;
            result.upper = false;
            if result.places != Places::NONE {
                result.places = Places::Any;
            }
        }
        self.assign(id, to, &result);
    }

    fn apply(&self, operation: Operation, wide: bool, values: &[Value]) -> Value {
        let fold =
            |start: Value, with: fn(&Value, &Value) -> Value| values.iter().fold(start, |a, b| with(&a, b));
        let plain = Value::plain();
        let at = |i: usize| values.get(i).unwrap_or(&plain);
        let numberless = |value: &Value| Value { constant: None, ..value.clone() };
        match operation {
            Operation::Choose => values.iter().fold(Value::UNSEEN, |mut all, value| {
                all.join(value);
                all
            }),
            Operation::Convert => at(0).certainly_pointer(),
            Operation::ConvertShared if at(0).base.is_empty() => {
                let shared = Value { all: at(0).all | Origins::SHARED, ..Value::pointer(Origins::SHARED) };
                shared.certainly_pointer()
            }
            Operation::ConvertShared => at(0).certainly_pointer(),
            Operation::Add => at(0).sum(at(1), false, self.pointers()),
            Operation::Subtract => at(0).sum(at(1), true, self.pointers()),
            // Masking may leave a pointer or only its low bits, so that the result is not a pointer for certain.
            Operation::Align => {
                let masked = numberless(at(0)).sum(&numberless(at(1)), false, self.pointers());
                Value { definite: false, upper: false, ..masked }
            }
            Operation::MultiplyAdd => at(0).product(at(1)).sum(at(2), false, self.pointers()),
            Operation::Number => fold(Value::plain(), Value::product),
            Operation::Mix => values.iter().fold(Value::plain(), |a, b| a.mixed(b, wide)),
            Operation::Assemble => fold(Value::plain(), Value::assembled),
            Operation::Piece => at(0).piece(),
            Operation::Raise => at(0).raised(),
            Operation::Lower => at(0).lowered(),
        }
    }

    /// Notes that these parameter words are pointers.
    fn note_words(&mut self, origins: Origins) {
        let evident = self.evident | origins.words();
        self.changed |= evident != self.evident;
        self.evident = evident;
    }

    /// An access shows that what its address is based on is a pointer.
    pub(super) fn note_pointer(&mut self, id: InstanceId, target: &Target) {
        if matches!(target.reach, Reach::Generic | Reach::Global) {
            let base = self.resolve_target(id, target).base;
            self.note_words(base);
        }
    }

    pub(super) fn load(&mut self, id: InstanceId, to: Slot, target: &Target, width: u32) {
        let address = self.resolve_target(id, target);
        if !address.defined {
            return;
        }
        let narrow = |value: &Value| if width >= 8 { value.clone() } else { value.piece() };
        let mut loaded = Value::UNSEEN;
        let reached = self.reached(target.reach, &address);
        if reached.meets(Origins::LOCAL) {
            loaded.join(&self.locals.load(&places_of(&address, Origins::LOCAL), width));
        }
        if reached.meets(Origins::SHARED) && self.shared.defined {
            loaded.join(&narrow(&self.shared));
        }
        if reached.meets(Origins::PARAMETER) {
            let value = self.load_parameter(id, &places_of(&address, Origins::PARAMETER), width);
            loaded.join(&value);
        }
        if reached.meets(Origins::UNKNOWN) {
            loaded.join(&self.data(width));
        }
        // Which half of a word was stored is not followed.
        loaded.upper &= !loaded.defined;
        self.assign(id, to, &loaded);
    }

    pub(super) fn store(&mut self, id: InstanceId, target: &Target, width: u32, from: Source) {
        let address = self.resolve_target(id, target);
        let value = self.resolve(id, from);
        if !address.defined || !value.defined {
            return;
        }
        let reached = self.reached(target.reach, &address);
        if reached.meets(Origins::LOCAL) {
            let places = places_of(&address, Origins::LOCAL);
            self.changed |= self.locals.store(&places, width, &value);
        }
        if reached.meets(Origins::SHARED) {
            // The offset is not followed, so no word is known to be whole.
            self.changed |= self.shared.join(&stored_value(&value, width, 0));
        }
        if reached.meets(Origins::PARAMETER) {
            self.store_parameter(id, &places_of(&address, Origins::PARAMETER), width, &value);
        }
        if reached.meets(Origins::UNKNOWN) {
            self.escape(value.all);
        }
    }

    /// Which memories an access can reach: `UNKNOWN` stands for all global memory.
    fn reached(&self, reach: Reach, address: &Value) -> Origins {
        match reach {
            Reach::Local => Origins::LOCAL,
            Reach::Shared => Origins::SHARED,
            Reach::Parameter => Origins::PARAMETER,
            Reach::Global | Reach::Texels => Origins::UNKNOWN,
            Reach::Generic => {
                let base = address.base;
                let own = base.and(Origins::LOCAL | Origins::SHARED | Origins::PARAMETER);
                if base.is_empty() {
                    return Origins::LOCAL | Origins::SHARED | Origins::UNKNOWN;
                }
                if base.meets(Origins::UNKNOWN) {
                    return own | Origins::UNKNOWN | self.escaped.and(Origins::LOCAL | Origins::SHARED);
                }
                if base == own { own } else { own | Origins::UNKNOWN }
            }
        }
    }

    /// Data out of memory that any kernel may have written, this one included.
    fn data(&self, width: u32) -> Value {
        let data = Value::data(width);
        Value { all: data.all | self.escaped.and(Origins::MANGLED), ..data }
    }

    /// Values with these origins are now where any pointer may be loaded from.
    pub(super) fn escape(&mut self, origins: Origins) {
        let escaped = self.escaped | origins.and(Origins::LOCAL | Origins::SHARED | Origins::MANGLED);
        self.changed |= escaped != self.escaped;
        self.escaped = escaped;
    }

    /// A store by code that may reach everything whose address has escaped.
    pub(super) fn store_anywhere(&mut self, width: u32, value: &Value) {
        if self.escaped.meets(Origins::LOCAL) {
            self.changed |= self.locals.store_anywhere(width, value);
        }
        self.changed |= self.shared.join(&stored_value(value, width, 0));
        self.escape(value.all);
    }

    /// Loads from parameter variables of this instance; another function's may hold anything.
    pub(super) fn load_parameter(&self, id: InstanceId, places: &Places, width: u32) -> Value {
        let Some(instance) = self.instances.get(id) else { return Value::UNSEEN };
        let own = match places {
            Places::Any => false,
            Places::Few(places) => places.iter().all(|place| self.owns(id, *place)),
        };
        let mut loaded = instance.cells.load(places, width);
        if !own {
            loaded.join(&Value::data(width));
            loaded.join(&Value::pointer(self.words));
        }
        loaded.join(&self.foreign);
        loaded
    }

    fn store_parameter(&mut self, id: InstanceId, places: &Places, width: u32, value: &Value) {
        let Places::Few(places) = places else {
            self.changed |= self.foreign.join(&stored_value(value, width, 1));
            return;
        };
        for place in places {
            if !self.owns(id, *place) {
                self.changed |= self.foreign.join(&stored_value(value, width, 1));
                continue;
            }
            let Some(instance) = self.instances.get_mut(id) else { return };
            let function = instance.function;
            if instance.store_parameter(*place, width, value) && self.is_result(function, place.variable) {
                self.wake_callers(id);
            }
        }
    }

    /// Whether a parameter variable belongs to the function of this instance.
    fn owns(&self, id: InstanceId, place: Place) -> bool {
        let owner = self.module.variable(place.variable).and_then(|variable| variable.owner);
        owner.is_some() && owner == self.instances.get(id).map(|instance| instance.function)
    }

    fn is_result(&self, function: PtxFunctionId, variable: VariableId) -> bool {
        self.module.function(function).is_some_and(|f| f.returns.contains(&Formal::Param(variable)))
    }

    fn wake_callers(&mut self, id: InstanceId) {
        let callers = self.instances.get(id).map_or(Vec::new(), |instance| instance.callers.clone());
        for caller in callers {
            if let Some(instance) = self.instances.get_mut(caller) {
                instance.enqueue_calls();
            }
        }
    }
}

/// The places of an address that an access to `space` means.
fn places_of(address: &Value, space: Origins) -> Places {
    match &address.places {
        Places::Few(places) if address.base.meets(space) && !places.is_empty() => Places::Few(places.clone()),
        _ => Places::Any,
    }
}
