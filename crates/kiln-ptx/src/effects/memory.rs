//! Instructions that touch memory, to steps.

use super::decode::{Decoder, width};
use super::step::{Action, Reach, Source, Target, Touch};
use crate::instruction_form::Form;
use crate::modifier::Flag;
use crate::opcode::Opcode;
use crate::operand::{AddressBase, Elements, PtxOperand};
use crate::state_space::Space;

impl Decoder<'_> {
    /// Instructions that touch memory or name it. False when it is none of these.
    pub(super) fn memory(&mut self, form: &Form, operands: &[PtxOperand]) -> bool {
        match form.opcode() {
            Opcode::Ld | Opcode::Ldu | Opcode::Ldmatrix => self.load(form, operands),
            Opcode::St | Opcode::Stmatrix => self.store(form, operands),
            Opcode::Atom => self.atomic(form, operands, true),
            Opcode::Red => self.atomic(form, operands, false),
            Opcode::Cp => self.copy(form, operands),
            Opcode::Prefetch | Opcode::Prefetchu | Opcode::Applypriority => {}
            Opcode::Discard => self.access_all(form, operands, Touch::WRITE),
            Opcode::Mbarrier | Opcode::Tensormap | Opcode::Clusterlaunchcontrol | Opcode::Tcgen05 => {
                self.access_all(form, operands, Touch::BOTH);
                self.data_results(operands, 4);
            }
            Opcode::Multimem => {
                let touch = if form.has_word("ld_reduce") { Touch::READ } else { Touch::BOTH };
                self.access_all(form, operands, touch);
                self.data_results(operands, width(form));
            }
            Opcode::Wmma if form.has_word("load") => {
                self.access_all(form, operands, Touch::READ);
                self.data_results(operands, 4);
            }
            Opcode::Wmma if form.has_word("store") => self.access_all(form, operands, Touch::WRITE),
            Opcode::Wmma | Opcode::Wgmma => self.data_results(operands, 4),
            Opcode::Tex | Opcode::Tld4 | Opcode::Suld => {
                self.texels(operands.get(1..).unwrap_or(&[]), Touch::READ);
                self.data_results(operands, width(form));
            }
            Opcode::Sust => self.texels(operands, Touch::WRITE),
            Opcode::Sured => self.texels(operands, Touch::BOTH),
            Opcode::Alloca => {
                for to in self.targets(operands) {
                    self.push(Action::Allocate { to });
                }
            }
            _ => return false,
        }
        true
    }

    fn load(&mut self, form: &Form, operands: &[PtxOperand]) {
        let reach = reach(form.opcode(), form.space());
        let Some(target) = operands.get(1).and_then(|operand| self.target(operand, reach)) else { return };
        let width = width(form);
        for (i, to) in self.element_slots(operands.first()).into_iter().enumerate() {
            let offset = target.offset.wrapping_add(i as i64 * i64::from(width));
            for to in to {
                self.push(Action::Load { to, target: Target { offset, ..target }, width });
            }
        }
        // A load whose result is not used still reads.
        self.push(Action::Access { target, touch: Touch::READ });
    }

    fn store(&mut self, form: &Form, operands: &[PtxOperand]) {
        let reach = reach(form.opcode(), form.space());
        let Some(target) = operands.first().and_then(|operand| self.target(operand, reach)) else { return };
        let width = width(form);
        let values = self.sources(operands.get(1..2).unwrap_or(&[]));
        for (i, from) in values.into_iter().enumerate() {
            let offset = target.offset.wrapping_add(i as i64 * i64::from(width));
            self.push(Action::Store { target: Target { offset, ..target }, width, from });
        }
        // Forms of `st` that zero memory or signal a barrier name no value, or a second address.
        self.access_all(form, operands, Touch::WRITE);
    }

    fn atomic(&mut self, form: &Form, operands: &[PtxOperand], has_result: bool) {
        let reach = reach(form.opcode(), form.space());
        let place = usize::from(has_result);
        let Some(target) = operands.get(place).and_then(|operand| self.target(operand, reach)) else {
            return;
        };
        let width = width(form);
        if has_result {
            for to in self.targets(operands) {
                self.push(Action::Load { to, target, width });
            }
        }
        for from in self.sources(operands.get(place + 1..).unwrap_or(&[])) {
            self.push(Action::Store { target, width, from });
        }
        self.push(Action::Access { target, touch: Touch::BOTH });
    }

    /// `cp.async` and its bulk relatives: to the first address from the second.
    fn copy(&mut self, form: &Form, operands: &[PtxOperand]) {
        let mut spaces = form.spaces();
        let (to, from) = (reach(Opcode::Cp, spaces.next()), reach(Opcode::Cp, spaces.next()));
        if form.has(Flag::Prefetch) {
            return;
        }
        let written = if form.has(Flag::Reduce) { Touch::BOTH } else { Touch::WRITE };
        for (operand, reach, touch) in [(operands.first(), to, written), (operands.get(1), from, Touch::READ)]
        {
            match operand {
                Some(PtxOperand::Bracket(elements)) => self.tensor(*elements, touch),
                Some(operand) => {
                    let Some(target) = self.target(operand, reach) else { continue };
                    self.push(Action::Access { target, touch });
                    if touch.writes {
                        self.push(Action::Store { target, width: 1, from: Source::Unknown });
                    }
                }
                None => {}
            }
        }
    }

    /// A tensor is touched: the memory that the first word of its map points at, as drivers and simulated devices write maps.
    fn tensor(&mut self, elements: Elements, touch: Touch) {
        let Some(map) = self.first_of(elements) else {
            return self.anywhere(touch, "a tensor map, which may show any memory");
        };
        let reach = match map {
            PtxOperand::Variable(..) => Reach::Parameter,
            _ => Reach::Generic,
        };
        let map = Target { reach, base: self.source(&map), offset: 0 };
        let to = self.own_slot();
        self.push(Action::Load { to, target: map, width: 8 });
        self.push(Action::Access { target: map, touch: Touch::READ });
        let tensor = Target { reach: Reach::Global, base: Source::Register(to), offset: 0 };
        self.push(Action::Access { target: tensor, touch });
        if touch.writes {
            self.push(Action::Store { target: tensor, width: 1, from: Source::Unknown });
        }
    }

    /// Every address among the operands is touched.
    fn access_all(&mut self, form: &Form, operands: &[PtxOperand], touch: Touch) {
        let reach = reach(form.opcode(), form.space());
        for operand in operands {
            match operand {
                PtxOperand::Bracket(_) => self.anywhere(touch, "a tensor map, which may show any memory"),
                _ => {
                    let Some(target) = self.target(operand, reach) else { continue };
                    self.push(Action::Access { target, touch });
                    // `st` has already said what it stores.
                    if touch.writes && form.opcode() != Opcode::St {
                        self.push(Action::Store { target, width: 1, from: Source::Unknown });
                    }
                }
            }
        }
    }

    /// What a texture or surface shows is touched; the values behind the brackets are stored there.
    fn texels(&mut self, operands: &[PtxOperand], touch: Touch) {
        let [place @ PtxOperand::Bracket(_), values @ ..] = operands else {
            return self.anywhere(touch, "a texture or surface, which may show any memory");
        };
        let handle = self.elements(place).first();
        let base = handle.map_or(Source::Unknown, |handle| self.source(handle));
        let target = Target { reach: Reach::Texels, base, offset: 0 };
        self.push(Action::Access { target, touch });
        if touch.writes {
            for from in self.sources(values) {
                self.push(Action::Store { target, width: 8, from });
            }
        }
    }

    fn anywhere(&mut self, touch: Touch, why: &'static str) {
        self.push(Action::Anywhere { touch, why });
    }

    /// The first operand holds data of unknown content, unless it is an address.
    fn data_results(&mut self, operands: &[PtxOperand], width: u32) {
        if matches!(operands.first(), Some(PtxOperand::Address(_) | PtxOperand::Bracket(_))) {
            return;
        }
        for to in self.targets(operands) {
            self.push(Action::Data { to, width });
        }
    }

    /// An address operand.
    fn target(&mut self, operand: &PtxOperand, reach: Reach) -> Option<Target> {
        let PtxOperand::Address(address) = operand else { return None };
        let base = match address.base {
            AddressBase::Register(id) => self.source(&PtxOperand::Register(id)),
            AddressBase::Variable(id) => Source::Address(id, 0),
            AddressBase::Absolute => Source::Plain,
        };
        Some(Target { reach, base, offset: address.offset })
    }

    /// The registers of each element of a destination.
    fn element_slots(&mut self, operand: Option<&PtxOperand>) -> Vec<Vec<u32>> {
        match operand {
            None => Vec::new(),
            Some(operand @ PtxOperand::Vector(_)) => {
                self.elements(operand).iter().map(|element| self.slots(element)).collect()
            }
            Some(operand) => vec![self.slots(operand)],
        }
    }
}

/// The memory an opcode reaches with a space written or not.
fn reach(opcode: Opcode, space: Option<Space>) -> Reach {
    match space.map(Space::base) {
        None if matches!(opcode, Opcode::Ldmatrix | Opcode::Stmatrix) => Reach::Shared,
        None => Reach::Generic,
        Some(Space::Local) => Reach::Local,
        Some(Space::Shared | Space::SharedCluster) => Reach::Shared,
        Some(Space::Param) => Reach::Parameter,
        Some(_) => Reach::Global,
    }
}
