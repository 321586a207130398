//! Summarises all accesses once the fixpoint is reached.

use super::analysis::{Analysis, InstanceId};
use super::call::{Reached, Runtime};
use super::effect::{Doubt, EffectAnswer};
use super::origin::Origins;
use super::step::{Action, Reach, Touch};
use super::value::{Places, Value};
use crate::call::CallId;
use crate::function::PtxFunctionId;
use crate::instruction::Instruction;
use crate::opcode::Opcode;
use crate::position::Position;
use crate::scalar::ScalarType;
use crate::scalar_set::ScalarSet;

/// The most doubts reported.
const MAX_DOUBTS: usize = 8;

/// What all accesses together do.
#[derive(Default)]
pub(super) struct AccessSummary {
    reads: Origins,
    writes: Origins,
    /// What was accessed with elements of which type; none where the instruction has no type.
    typed: Vec<(Origins, Option<ScalarType>)>,
    pub(super) doubts: Vec<Doubt>,
}

impl AccessSummary {
    /// Judges every access of every instance.
    pub(super) fn judge(analysis: &Analysis<'_>) -> Self {
        let mut summary = Self::default();
        for (id, instance) in analysis.instances.iter().enumerate() {
            for step in &instance.code.steps {
                let at = || analysis.position(instance.function, step.instruction);
                match &step.action {
                    Action::Access { target, touch } => {
                        let address = analysis.resolve_target(id, target);
                        if target.reach == Reach::Texels {
                            summary.touch_texels(analysis, instance.function, &address, *touch, at);
                        } else if matches!(target.reach, Reach::Generic | Reach::Global) {
                            let element = analysis.element(instance.function, step.instruction);
                            summary.type_of(address.base.words(), element);
                            summary.touch(analysis, instance.function, &address, *touch, at);
                        }
                    }
                    Action::Anywhere { touch, why } => {
                        summary.doubt(analysis, instance.function, *touch, why, at);
                    }
                    Action::Call(call) => summary.call(analysis, id, *call, at),
                    _ => {}
                }
            }
        }
        summary
    }

    /// The answers for the parameter words in `word`.
    pub(super) fn answers(&self, word: Origins) -> (EffectAnswer, EffectAnswer) {
        let answer = |set: Origins| {
            if set.meets(word) {
                EffectAnswer::Yes
            } else if set.meets(Origins::UNKNOWN) {
                EffectAnswer::Unknown
            } else {
                EffectAnswer::No
            }
        };
        (answer(self.reads), answer(self.writes))
    }

    /// The types of elements that are read or written through the parameter words in `word`.
    pub(super) fn elements(&self, word: Origins) -> Option<ScalarSet> {
        if (self.reads | self.writes).meets(Origins::UNKNOWN) {
            return None;
        }
        self.typed.iter().filter(|(base, _)| base.meets(word)).map(|(_, ty)| *ty).collect()
    }

    fn type_of(&mut self, words: Origins, element: Option<ScalarType>) {
        if !words.is_empty() && !self.typed.contains(&(words, element)) {
            self.typed.push((words, element));
        }
    }

    fn touch(
        &mut self,
        analysis: &Analysis<'_>,
        function: PtxFunctionId,
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

    /// An access through the handle of a texture or surface. The launch declares what the handle shows, as it does for a pointer; a handle from
    /// elsewhere may show anything.
    fn touch_texels(
        &mut self,
        analysis: &Analysis<'_>,
        function: PtxFunctionId,
        handle: &Value,
        touch: Touch,
        at: impl Fn() -> Position,
    ) {
        let declared = handle.base.words() | handle.base.and(Origins::MODULE);
        if handle.base.is_empty() || declared != handle.base {
            let reason = "a texture or surface whose handle does not come from a parameter";
            return self.doubt(analysis, function, touch, reason, at);
        }
        if touch.reads {
            self.reads |= declared;
        }
        if touch.writes {
            self.writes |= declared;
        }
        self.type_of(declared.words(), None);
    }

    fn doubt(
        &mut self,
        analysis: &Analysis<'_>,
        function: PtxFunctionId,
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
                        self.type_of(value.base.words(), None);
                        self.touch(analysis, instance.function, &value, runtime.touch(), &at);
                    }
                }
                let format = call.arguments.first().map(|format| analysis.argument_word(id, format, 0));
                if runtime == Runtime::Printf && format.is_none_or(|format| analysis.may_print_text(&format))
                {
                    // The text is behind a pointer among the arguments, which lie in local memory.
                    let arguments = analysis.locals.everything().clone();
                    self.type_of(arguments.base.words(), None);
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

    fn position(&self, function: PtxFunctionId, instruction: u32) -> Position {
        let instruction = self.instruction(function, instruction);
        instruction.map_or(Position::default(), |instruction| instruction.origin.position())
    }

    /// The type of the elements an instruction moves between registers and memory.
    fn element(&self, function: PtxFunctionId, instruction: u32) -> Option<ScalarType> {
        let form = self.module.form(self.instruction(function, instruction)?.form)?;
        let moves =
            matches!(form.opcode(), Opcode::Ld | Opcode::Ldu | Opcode::St | Opcode::Atom | Opcode::Red);
        form.ty().filter(|_| moves)
    }

    fn instruction(&self, function: PtxFunctionId, instruction: u32) -> Option<&Instruction> {
        let body = self.module.function(function).and_then(|f| f.body.as_ref())?;
        body.instructions().get(instruction as usize)
    }
}
