//! Effects: what a kernel does with the memory behind each pointer parameter.
//!
//! # What the answer means
//!
//! [`Answer::No`] is a promise: no access of the kernel reads (or writes) the memory behind that pointer. The other
//! way round it is an upper bound: [`Answer::Yes`] says that an instruction may, not that it will. Where some access
//! cannot be traced to its pointer, every answer that is not already yes is [`Answer::Unknown`].
//!
//! # Why it is sound
//!
//! For every register the analysis keeps the set of things its value may have been computed from, over all
//! instructions of all functions that can be reached, whatever the order of execution: to a fixpoint, with joins only. A register that holds
//! unrelated values in different parts of the code counts as several.
//!
//! 1. *Everything has an origin.* A value is computed from the words of the parameters, addresses of variables, data
//!    loaded from memory, or numbers. Memory the kernel did not write itself may hold any pointer, so a full-width
//!    load gives the origin "unknown", and an access through it makes every answer unknown: it may be any parameter's
//!    memory. A narrower load gives a fragment; wherever full-width values can be put together from fragments (packing,
//!    large shifts, bit-field insertion, partial stores) the result is unknown too. An access through something that
//!    has no origin is unknown.
//! 2. *A sum points where its pointer points.* In `p + i` the number must not count as the base. Which operand is the
//!    number is decided only when it can be told: it never pointed anywhere (an index, a product, a comparison), or the
//!    other operand was converted by `cvta` or is a variable's address, and so is a pointer for certain. An operand
//!    computed from a pointer, or out of an operation that might have negated one, never counts as the number: in
//!    `b + (a - b)` both remain, also when the difference went through memory. Masking, truncation and every operation
//!    that is not followed give a value that may be a pointer, never one that is for certain.
//! 3. *Memory is followed where it is private.* Local variables and call parameters are kept word by word, at known
//!    offsets; shared memory as one cell. When their addresses get where any code might have them, stores through
//!    unknown addresses reach them.
//! 4. *Calls are followed* into code that is in the module, recursion included. `vprintf`, `__assertfail`, `malloc` and
//!    `free` are known. Any other call, and any call through a pointer, may touch anything.
//! 5. *What a texture or surface shows belongs to its handle*: a fetch reads through the parameter that holds the handle, which counts as no
//!    pointer, or through a variable of the module. The launch declares the memory that is shown, as it declares arrays. A handle from
//!    elsewhere may show anything.
//! 6. *What is not understood is assumed to do its worst*: an unknown instruction, a tensor map, 32-bit addresses, code that takes
//!    more than a bounded amount of work to analyse.
//!
//! It relies on what every valid CUDA program keeps: an access stays inside the allocation its base pointer points
//! into; an address is not obtained by multiplication, division, floating point, comparison or branching on its bits,
//! nor by adding a difference of pointers that came from outside the kernel; `cvta` is applied to pointers; and no
//! parameter points into shared or local memory, the module's own variables, the device's heap or the driver's
//! workspace. A program that breaks the first of these has a fault, which the simulator finds at run time.

mod access_summary;
mod analysis;
mod call;
mod decode;
mod effect;
mod memory;
mod origin;
mod register_webs;
mod step;
mod transfer_function;
mod value;
mod variable_values;

pub use effect::{Doubt, EffectAnswer, Effects, PointerAccess, PointerEffect, PointerUse};

use crate::call::Formal;
use crate::function::{PtxFunction, PtxFunctionId};
use crate::module::PtxModule;
use crate::scalar_set::ScalarSet;
use crate::variable::VariableId;
use access_summary::AccessSummary;
use analysis::Analysis;
use origin::Origins;
use value::Value;

/// One 8-byte word of the parameters.
struct Word {
    parameter: usize,
    variable: VariableId,
    offset: u32,
    origin: Origins,
    marked: bool,
}

impl PtxModule {
    /// What an entry does with the memory its parameters point at; `None` when there is no such entry or no code.
    ///
    /// ```
    /// # let text = "
    /// #     .version 9.0
    /// #     .target sm_90
    /// #     .address_size 64
    /// #     .visible .entry copy(.param .u64 from, .param .u64 to) {
    /// #         .reg .b32 %r<2>;
    /// #         .reg .b64 %rd<3>;
    /// #         ld.param.u64 %rd1, [from];
    /// #         ld.param.u64 %rd2, [to];
    /// #         ld.global.u32 %r1, [%rd1];
    /// #         st.global.u32 [%rd2], %r1;
    /// #         ret;
    /// #     }";
    /// use kiln_ptx::{PointerAccess, PtxModule};
    ///
    /// let module = PtxModule::parse(text)?; // copies *from to *to
    /// let effects = module.effects(module.find_function("copy").unwrap()).unwrap();
    /// assert_eq!(effects.pointers[0].effect.access(), PointerAccess::Reads);
    /// assert_eq!(effects.pointers[1].effect.access(), PointerAccess::Writes);
    /// # Ok::<(), kiln_ptx::ParseError>(())
    /// ```
    pub fn effects(&self, entry: PtxFunctionId) -> Option<Effects> {
        let function = self.function(entry).filter(|f| f.is_entry() && f.body.is_some())?;
        let words = parameter_words(self, function);
        let marked = words.iter().filter(|w| w.marked).fold(Origins::NONE, |all, w| all | w.origin);
        if self.address_bits != 64 {
            return Some(give_up(function, &words, marked, "addresses of 32 bits"));
        }
        let mut analysis =
            Analysis::new(self, marked, words.iter().fold(Origins::NONE, |all, w| all | w.origin));
        analysis.start(entry, &first_values(self, function, &words));
        if analysis.run().is_err() {
            let reason = "more code paths than the analysis follows";
            return Some(give_up(function, &words, analysis.evident, reason));
        }
        let summary = AccessSummary::judge(&analysis);
        let effect = |word: &Word| {
            let (reads, writes) = summary.answers(word.origin);
            PointerEffect { reads, writes }
        };
        let pointers = words.iter().map(|word| {
            let elements = summary.elements(word.origin);
            word.used(analysis.evident, effect(word), elements)
        });
        Some(Effects { pointers: pointers.collect(), doubts: summary.doubts })
    }
}

impl Word {
    fn used(&self, evident: Origins, effect: PointerEffect, elements: Option<ScalarSet>) -> PointerUse {
        let is_pointer = evident.meets(self.origin);
        PointerUse { parameter: self.parameter, offset: self.offset, is_pointer, effect, elements }
    }
}

/// The 8-byte words of all parameters that have any. Parameters of one word get their origins before the words of structures: origins are few, and
/// a pointer beside a large structure must not share one with it.
fn parameter_words(module: &PtxModule, function: &PtxFunction) -> Vec<Word> {
    let mut words = Vec::new();
    for (parameter, formal) in function.parameters.iter().enumerate() {
        let Formal::Param(id) = *formal else { continue };
        let Some(variable) = module.variable(id) else { continue };
        for word in 0..analysis::word_count(module, id) {
            if variable.shape.size_bytes() < 8 {
                continue;
            }
            let marked = variable.pointer.is_some();
            words.push(Word {
                parameter,
                variable: id,
                offset: word as u32 * 8,
                origin: Origins::NONE,
                marked,
            });
        }
    }
    let is_single =
        |word: &Word| module.variable(word.variable).is_some_and(|variable| variable.shape.size_bytes() == 8);
    let (single, parts): (Vec<_>, Vec<_>) = words.iter_mut().partition(|word| is_single(word));
    for (at, word) in single.into_iter().chain(parts).enumerate() {
        word.origin = Origins::word(at);
    }
    words
}

/// What the parameters hold when the kernel starts.
fn first_values(module: &PtxModule, function: &PtxFunction, words: &[Word]) -> Vec<(VariableId, i64, Value)> {
    let mut values: Vec<_> = words
        .iter()
        .map(|word| {
            let value = Value::pointer(word.origin);
            let value = if word.marked { value.certainly_pointer() } else { value };
            (word.variable, i64::from(word.offset), value)
        })
        .collect();
    for formal in &function.parameters {
        let Formal::Param(id) = *formal else { continue };
        if module.variable(id).is_some_and(|variable| variable.shape.size_bytes() < 8) {
            values.push((id, 0, Value::data(4)));
        }
    }
    values
}

/// Every answer is unknown.
fn give_up(function: &PtxFunction, words: &[Word], evident: Origins, reason: &'static str) -> Effects {
    let effect = PointerEffect { reads: EffectAnswer::Unknown, writes: EffectAnswer::Unknown };
    let pointers = words.iter().map(|word| word.used(evident, effect, None)).collect();
    let doubt = Doubt { function: function.name.clone(), position: function.origin.position(), reason };
    Effects { pointers, doubts: vec![doubt] }
}
