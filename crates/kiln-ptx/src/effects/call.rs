//! Calls: of functions with a body, of functions of the CUDA runtime, and of unknown functions.

use super::analysis::{Analysis, InstanceId, word_count};
use super::origin::Origins;
use super::step::Touch;
use super::value::{Place, Places, Value};
use crate::call::{Call, CallId, Callee, Formal};
use crate::function::PtxFunctionId;
use crate::operand::PtxOperand;

/// What a call reaches.
pub(super) enum Reached {
    /// Code to follow.
    Code(PtxFunctionId),
    /// A function of the runtime that is known by name.
    Runtime(Runtime),
    /// Anything.
    Unknown(&'static str),
}

/// Functions that compilers call and no module defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Runtime {
    /// Reads its format and arguments, and strings that arguments point at.
    Printf,
    /// Reads its texts and ends the kernel.
    Assert,
    /// Returns memory no parameter points at.
    Allocate,
    /// Gives memory back: what was there is gone.
    Free,
}

impl Runtime {
    fn named(name: &str) -> Option<Self> {
        match name {
            "vprintf" => Some(Self::Printf),
            "__assertfail" => Some(Self::Assert),
            "malloc" => Some(Self::Allocate),
            "free" => Some(Self::Free),
            _ => None,
        }
    }

    /// What it does with the memory its arguments point at.
    pub(super) fn touch(self) -> Touch {
        match self {
            Self::Printf | Self::Assert => Touch::READ,
            Self::Allocate => Touch::NOTHING,
            Self::Free => Touch::WRITE,
        }
    }
}

impl Analysis<'_> {
    /// The call with this number in the function of an instance.
    pub(super) fn find_call(&self, id: InstanceId, call: CallId) -> Option<&Call> {
        let instance = self.instances.get(id)?;
        self.module.function(instance.function)?.body.as_ref()?.call(call)
    }

    pub(super) fn reach(&self, call: &Call) -> Reached {
        let Callee::Function(id) = call.callee else {
            return Reached::Unknown("a call through a function pointer");
        };
        let id = self.module.resolve_alias(id);
        match self.module.function(id) {
            Some(function) if function.body.is_some() => Reached::Code(id),
            Some(function) => match Runtime::named(&function.name) {
                Some(runtime) => Reached::Runtime(runtime),
                None => Reached::Unknown("a call to a function whose code is not in the module"),
            },
            None => Reached::Unknown("a call to a function whose code is not in the module"),
        }
    }

    pub(super) fn call(&mut self, id: InstanceId, call: CallId) {
        let module = self.module;
        let Some(instance) = self.instances.get(id) else { return };
        let body = module.function(instance.function).and_then(|function| function.body.as_ref());
        let Some(call) = body.and_then(|body| body.call(call)) else { return };
        match self.reach(call) {
            Reached::Code(function) => self.follow(id, call, function),
            Reached::Runtime(Runtime::Allocate) => {
                let fresh = Value::pointer(Origins::MODULE).certainly_pointer();
                self.return_everywhere(id, call, &fresh);
            }
            Reached::Runtime(_) => self.return_everywhere(id, call, &Value::plain()),
            Reached::Unknown(_) => {
                let mut passed = Value::pointer(Origins::UNKNOWN);
                for argument in &call.arguments {
                    passed.join(&self.argument_summary(id, argument));
                }
                let anything = Value::pointer(passed.all.assembled() | Origins::UNKNOWN);
                self.escape(passed.all);
                self.store_anywhere(8, &anything);
                self.return_everywhere(id, call, &anything);
            }
        }
    }

    /// Everything an argument may carry.
    pub(super) fn argument_summary(&self, id: InstanceId, argument: &PtxOperand) -> Value {
        match *argument {
            PtxOperand::Variable(variable, _) => {
                let whole = Places::Few(vec![Place { variable, offset: None }]);
                self.load_parameter(id, &whole, 8)
            }
            _ => self.argument_word(id, argument, 0),
        }
    }

    /// One 8-byte word of an argument.
    pub(super) fn argument_word(&self, id: InstanceId, argument: &PtxOperand, word: i64) -> Value {
        match *argument {
            PtxOperand::Variable(variable, offset) => {
                let place = Place { variable, offset: offset.checked_add(word * 8) };
                self.load_parameter(id, &Places::Few(vec![place]), 8)
            }
            PtxOperand::Register(register) if word == 0 => {
                let instance = self.instances.get(id);
                let slot = instance.and_then(|instance| instance.code.find(register));
                slot.map_or(Value::plain(), |slot| instance.map_or(Value::UNSEEN, |i| i.value(slot).clone()))
            }
            _ => Value::plain(),
        }
    }

    fn follow(&mut self, id: InstanceId, call: &Call, callee: PtxFunctionId) {
        let module = self.module;
        let Some(function) = module.function(callee) else { return };
        let mut words = Vec::new();
        for (i, formal) in function.parameters.iter().enumerate() {
            let count = match *formal {
                Formal::Param(variable) => word_count(module, variable),
                Formal::Register(_) => 1,
            };
            for word in 0..count {
                words.push(
                    call.arguments.get(i).map_or(Value::plain(), |arg| self.argument_word(id, arg, word)),
                );
            }
        }
        let target = self.instance(callee, words, id);
        for (formal, result) in function.returns.iter().zip(&call.returns) {
            self.return_value(id, target, *formal, result);
        }
    }

    /// Copies one result of a callee to where its caller wants it.
    fn return_value(&mut self, id: InstanceId, from: InstanceId, formal: Formal, result: &PtxOperand) {
        let count = match formal {
            Formal::Param(variable) => word_count(self.module, variable),
            Formal::Register(_) => 1,
        };
        for word in 0..count {
            let value = match formal {
                Formal::Param(variable) => {
                    let place = Place { variable, offset: Some(word * 8) };
                    self.load_parameter(from, &Places::Few(vec![place]), 8)
                }
                Formal::Register(register) => {
                    let instance = self.instances.get(from);
                    let slot = instance.and_then(|instance| instance.code.find(register));
                    slot.map_or(Value::plain(), |s| instance.map_or(Value::UNSEEN, |i| i.value(s).clone()))
                }
            };
            self.give_back(id, result, word, &value);
        }
    }

    /// Gives every result of a call the same value.
    fn return_everywhere(&mut self, id: InstanceId, call: &Call, value: &Value) {
        for result in &call.returns {
            let count = match *result {
                PtxOperand::Variable(variable, _) => word_count(self.module, variable),
                _ => 1,
            };
            for word in 0..count {
                self.give_back(id, result, word, value);
            }
        }
    }

    fn give_back(&mut self, id: InstanceId, result: &PtxOperand, word: i64, value: &Value) {
        let Some(instance) = self.instances.get_mut(id) else { return };
        match *result {
            PtxOperand::Variable(variable, offset) => {
                let place = Place { variable, offset: offset.checked_add(word * 8) };
                instance.store_parameter(place, 8, value);
            }
            PtxOperand::Register(register) => {
                if let Some(slot) = instance.code.find(register) {
                    instance.assign(slot, value);
                }
            }
            _ => {}
        }
    }
}
