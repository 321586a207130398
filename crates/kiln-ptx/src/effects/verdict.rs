//! From the fixpoint to answers.

use super::analysis::{Analysis, InstanceId};
use super::call::{Reached, Runtime};
use super::effect::{Answer, Doubt};
use super::origin::Origins;
use super::step::{Action, Reach, Touch};
use super::value::{Places, Value};
use crate::call::CallId;
use crate::function::FunctionId;
use crate::position::Position;

/// The most doubts reported.
const MAX_DOUBTS: usize = 8;

/// What all accesses together do.
#[derive(Default)]
pub(super) struct Verdict {
    reads: Origins,
    writes: Origins,
    pub(super) doubts: Vec<Doubt>,
}

impl Verdict {
    /// Judges every access of every instance.
    pub(super) fn judge(analysis: &Analysis<'_>) -> Self {
        let mut verdict = Self::default();
        for (id, instance) in analysis.instances.iter().enumerate() {
            for step in &instance.code.steps {
                let at = || analysis.position(instance.function, step.instruction);
                match &step.action {
                    Action::Access { target, touch } => {
                        if matches!(target.reach, Reach::Generic | Reach::Global) {
                            let address = analysis.resolve_target(id, target);
                            verdict.touch(analysis, instance.function, &address, *touch, at);
                        }
                    }
                    Action::Anywhere { touch, why } => {
                        verdict.doubt(analysis, instance.function, *touch, why, at);
                    }
                    Action::Call(call) => verdict.call(analysis, id, *call, at),
                    _ => {}
                }
            }
        }
        verdict
    }

    /// The answers for the parameter words in `word`.
    pub(super) fn answers(&self, word: Origins) -> (Answer, Answer) {
        let answer = |set: Origins| {
            if set.meets(word) {
                Answer::Yes
            } else if set.meets(Origins::UNKNOWN) {
                Answer::Unknown
            } else {
                Answer::No
            }
        };
        (answer(self.reads), answer(self.writes))
    }

    fn touch(
        &mut self,
        analysis: &Analysis<'_>,
        function: FunctionId,
        address: &Value,
        touch: Touch,
        at: impl Fn() -> Position,
    ) {
        if touch.reads {
            self.reads |= address.base;
        }
        if touch.writes {
            self.writes |= address.base;
        }
        if address.base.is_empty() {
            self.doubt(analysis, function, touch, "an address that derives from no pointer", at);
        } else if address.base.meets(Origins::UNKNOWN) {
            self.doubt(
                analysis,
                function,
                touch,
                "an address loaded from memory or put together from data",
                at,
            );
        }
    }

    fn doubt(
        &mut self,
        analysis: &Analysis<'_>,
        function: FunctionId,
        touch: Touch,
        reason: &'static str,
        at: impl Fn() -> Position,
    ) {
        if touch.reads {
            self.reads |= Origins::UNKNOWN;
        }
        if touch.writes {
            self.writes |= Origins::UNKNOWN;
        }
        let Some(function) = analysis.module.function(function) else { return };
        if touch == Touch::NOTHING || self.doubts.len() == MAX_DOUBTS {
            return;
        }
        let doubt = Doubt { function: function.name.clone(), position: at(), reason };
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    fn call(&mut self, analysis: &Analysis<'_>, id: InstanceId, call: CallId, at: impl Fn() -> Position) {
        let Some(instance) = analysis.instances.get(id) else { return };
        let Some(call) = analysis.find_call(id, call) else { return };
        match analysis.reach(call) {
            Reached::Code(_) => {}
            Reached::Unknown(reason) => self.doubt(analysis, instance.function, Touch::BOTH, reason, at),
            Reached::Runtime(runtime) => {
                for argument in &call.arguments {
                    let value = analysis.argument_summary(id, argument);
                    // A number such as the line of an assertion points nowhere and is not followed.
                    if !value.base.is_empty() {
                        self.touch(analysis, instance.function, &value, runtime.touch(), &at);
                    }
                }
                let format = call.arguments.first().map(|format| analysis.argument_word(id, format, 0));
                if runtime == Runtime::Printf && format.is_none_or(|format| analysis.may_print_text(&format))
                {
                    // The text is behind a pointer among the arguments, which lie in local memory.
                    let arguments = analysis.locals.everything().clone();
                    self.touch(analysis, instance.function, &arguments, Touch::READ, at);
                }
            }
        }
    }
}

impl Analysis<'_> {
    /// Whether a format of `printf` may contain `%s`: no, if it is a known text that does not.
    fn may_print_text(&self, format: &Value) -> bool {
        let Places::Few(places) = &format.places else { return true };
        let texts = places.iter().map(|place| {
            let variable = self.module.variable(place.variable)?;
            // Compilers keep literal texts to the module; any kernel may write a variable that others can name.
            let literal = variable.initializer.as_ref().filter(|_| variable.linkage.is_none());
            literal.map(|initializer| &initializer.bytes)
        });
        let has_text = |bytes: &Vec<u8>| {
            let conversions = bytes.split(|b| *b == b'%').skip(1);
            conversions.into_iter().any(|rest| rest.iter().find(|b| b.is_ascii_alphabetic()) == Some(&b's'))
        };
        places.is_empty()
            || format.base != Origins::MODULE
            || texts.into_iter().any(|text| text.is_none_or(has_text))
    }

    fn position(&self, function: FunctionId, instruction: u32) -> Position {
        let body = self.module.function(function).and_then(|f| f.body.as_ref());
        let instruction = body.and_then(|body| body.instructions().get(instruction as usize));
        instruction.map_or(Position::default(), |instruction| instruction.origin.position())
    }
}
