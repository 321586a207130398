//! The wire format of protocol buffers: fields with a number and a type.

/// A message that is being written.
#[derive(Default)]
pub(super) struct Wire {
    bytes: Vec<u8>,
}

impl Wire {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A number, of as many bytes as it needs.
    pub(super) fn number(&mut self, field: u32, number: u64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(number);
        self
    }

    /// A number of eight bytes.
    pub(super) fn fixed(&mut self, field: u32, number: u64) -> &mut Self {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Text, or a message that is written already.
    pub(super) fn text(&mut self, field: u32, text: impl AsRef<[u8]>) -> &mut Self {
        let text = text.as_ref();
        self.length(field, text.len());
        self.bytes.extend_from_slice(text);
        self
    }

    /// What stands before so many bytes of text or message.
    pub(super) fn length(&mut self, field: u32, bytes: usize) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes as u64);
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        // Most messages are shorter than 128 bytes, and then the length has one byte.
        let at = self.bytes.len();
        self.bytes.push(0);
        write(self);
        let length = self.bytes.len() - at - 1;
        if let (Ok(short @ 0..=0x7f), Some(place)) = (u8::try_from(length), self.bytes.get_mut(at)) {
            *place = short;
        } else {
            let mut long = Self::default();
            long.varint(length as u64);
            self.bytes.splice(at..=at, long.bytes);
        }
        self
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_public_documentation_come_out() {
        let mut wire = Wire::default();
        assert_eq!(wire.number(1, 150).bytes(), [0x08, 0x96, 0x01]);
        wire.clear();
        assert_eq!(wire.text(2, "testing").bytes(), b"\x12\x07testing");
        wire.clear();
        assert_eq!(
            wire.message(3, |inner| {
                inner.number(1, 150);
            })
            .bytes(),
            [0x1a, 3, 0x08, 0x96, 0x01]
        );
    }

    #[test]
    fn a_long_message_has_a_long_length() {
        let (mut long, mut plain) = (Wire::default(), Wire::default());
        let text = "x".repeat(300);
        long.message(3, |inner| {
            inner.text(2, &text);
        });
        plain.text(2, &text);
        let inner = std::mem::take(&mut plain.bytes);
        assert_eq!(long.bytes(), plain.text(3, inner).bytes());
    }
}
