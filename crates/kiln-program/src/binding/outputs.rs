//! `Outputs`: downloaded results for which the caller gave no vector.

use kiln_runtime::internal::zeroed_vec;
use kiln_runtime::{Element, Result};

use crate::element_kind::ElementKind;
use crate::error::ProgramError;

/// Results by the names of their buffers.
#[derive(Clone, Default, Debug)]
pub struct Outputs {
    pub(crate) buffers: Vec<(String, kiln_ir::Type, Vec<u8>)>,
}

impl Outputs {
    /// The elements of a buffer, taken out.
    ///
    /// # Errors
    /// No such buffer; elements of another type; no host memory for them. The buffer then stays here.
    pub fn take<T: Element>(&mut self, name: &str) -> Result<Vec<T>> {
        let Some(at) = self.buffers.iter().position(|(known, ..)| known == name) else {
            let known: Vec<&str> = self.buffers.iter().map(|(name, ..)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(ProgramError::Unknown { what: "buffer", name: name.to_owned(), known }.into());
        };
        let given = ElementKind::of::<T>();
        let wanted = self.buffers[at].1;
        if !given.fits(wanted) {
            return Err(ProgramError::Element { name: name.to_owned(), wanted, given }.into());
        }
        let bytes = &self.buffers[at].2;
        let mut elements = zeroed_vec(bytes.len().checked_div(size_of::<T>()).unwrap_or(0))?;
        bytemuck::cast_slice_mut(&mut elements).copy_from_slice(bytes);
        self.buffers.remove(at);
        Ok(elements)
    }

    /// The names that are left.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.buffers.iter().map(|(name, ..)| name.as_str())
    }
}
