//! Work that was queued and is not known to be done, by the objects it names.

use std::collections::HashMap;
use std::sync::Arc;

use super::command_operands::{Footprint, Name, Touch};
use super::order::{Order, Point};

/// How many uses are noted before those that are done are thrown out.
const SWEEP_USES: usize = 1024;

/// All uses that may still matter.
#[derive(Debug, Default)]
pub(super) struct Uses {
    by_name: HashMap<Name, Vec<Use>>,
    noted: usize,
}

/// One use of an object by queued work.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) point: Point,
    /// The bytes; none for a use of the object as such.
    pub(super) touch: Option<Touch>,
    /// The command in one word.
    pub(super) command: &'static str,
    /// The kernel, if it is a launch of a known one.
    kernel: Option<Arc<str>>,
}

impl Uses {
    pub(super) fn note(&mut self, footprint: &Footprint, point: Point, command: &'static str, order: &Order) {
        for touch in &footprint.touches {
            let kernel = footprint.kernel.clone();
            self.push(touch.name, Use { point, touch: Some(touch.clone()), command, kernel });
        }
        for name in &footprint.holds {
            self.push(*name, Use { point, touch: None, command, kernel: footprint.kernel.clone() });
        }
        if self.noted > SWEEP_USES {
            self.sweep(order);
        }
    }

    /// An object is needed as such until a point is done.
    pub(super) fn hold(&mut self, name: Name, point: Point, command: &'static str) {
        self.push(name, Use { point, touch: None, command, kernel: None });
    }

    /// The uses of an object that are not known to be done.
    pub(super) fn open<'a>(&'a self, name: Name, order: &'a Order) -> impl Iterator<Item = &'a Use> {
        self.by_name
            .get(&name)
            .map_or(&[][..], Vec::as_slice)
            .iter()
            .filter(|used| !order.is_done(used.point))
    }

    pub(super) fn forget(&mut self, name: Name) {
        self.by_name.remove(&name);
    }

    fn push(&mut self, name: Name, used: Use) {
        self.by_name.entry(name).or_default().push(used);
        self.noted += 1;
    }

    fn sweep(&mut self, order: &Order) {
        self.by_name.retain(|_, uses| {
            uses.retain(|used| !order.is_done(used.point));
            !uses.is_empty()
        });
        self.noted = 0;
    }
}

impl Use {
    /// What it does, for a message.
    pub(super) fn describe(&self) -> String {
        let Point { stream, at } = self.point;
        let number = at / 2;
        let command = named(self.command, self.kernel.as_deref());
        match &self.touch {
            Some(touch) => format!("the {command} of {stream} {number} {}", touch.describe()),
            None => format!("the {command} of {stream} {number} uses it"),
        }
    }
}

/// A command in words, with its kernel.
pub(super) fn named(command: &str, kernel: Option<&str>) -> String {
    kernel.map_or_else(|| command.to_owned(), |kernel| format!("{command} of {kernel}"))
}
