//! Writes the fields of events.

use std::collections::HashMap;

/// Names are cut to so many bytes.
pub const MAX_NAME_BYTES: usize = 1024;

/// The events of a block that is being filled. Names are kept once; a time is written as its distance from the last one.
#[derive(Default)]
pub(crate) struct FieldEncoder {
    events: Vec<u8>,
    numbers: HashMap<Box<str>, u64>,
    names: Vec<u8>,
    last_time: u64,
}

impl FieldEncoder {
    /// Bytes that the block would have now, without the number of names.
    pub(crate) fn bytes(&self) -> usize {
        self.events.len() + self.names.len()
    }

    /// The two pieces of the block's contents.
    pub(crate) fn contents(&self) -> (Vec<u8>, &[u8]) {
        let mut names = Vec::with_capacity(self.names.len() + 10);
        push_number(&mut names, self.numbers.len() as u64);
        names.extend_from_slice(&self.names);
        (names, &self.events)
    }

    /// Starts another block.
    pub(crate) fn clear(&mut self) {
        self.events.clear();
        self.numbers.clear();
        self.names.clear();
        self.last_time = 0;
    }

    /// One byte.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.events.push(byte);
    }

    /// A number, of as many bytes as it needs.
    pub(crate) fn number(&mut self, number: u64) {
        push_number(&mut self.events, number);
    }

    /// A time.
    pub(crate) fn time(&mut self, time: u64) {
        let distance = time.wrapping_sub(self.last_time) as i64;
        self.last_time = time;
        self.number(((distance << 1) ^ (distance >> 63)) as u64);
    }

    /// A name; the empty one needs no entry.
    pub(crate) fn name(&mut self, name: &str) {
        let name = shortened(name);
        let number = match self.numbers.get(name) {
            _ if name.is_empty() => 0,
            Some(number) => *number,
            None => {
                let number = self.numbers.len() as u64 + 1;
                push_number(&mut self.names, name.len() as u64);
                self.names.extend_from_slice(name.as_bytes());
                self.numbers.insert(name.into(), number);
                number
            }
        };
        self.number(number);
    }
}

/// The longest start that is text and not too long.
fn shortened(name: &str) -> &str {
    let mut end = name.len().min(MAX_NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default()
}

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        let name = format!("{}é", "x".repeat(MAX_NAME_BYTES - 1));
        assert_eq!(shortened(&name).len(), MAX_NAME_BYTES - 1);
        assert_eq!(shortened("saxpy"), "saxpy");
    }
}
