//! A reader of pickles, written after Python's `pickletools`, for those opcodes that the snapshot viewer knows.

use std::collections::BTreeMap;

/// What a pickle holds.
#[derive(Debug)]
pub(crate) enum Pickled {
    Integer(i128),
    Text(String),
    List(Vec<Pickled>),
    Dictionary(BTreeMap<String, Pickled>),
}

impl Pickled {
    /// Reads a whole pickle; stops the test at anything that is none.
    pub(crate) fn read(bytes: &[u8]) -> Self {
        let mut reader = Reader { bytes, stack: Vec::new(), marks: Vec::new() };
        assert_eq!((reader.take(1)[0], reader.take(1)[0]), (0x80, 2), "protocol 2");
        while reader.step() {}
        assert!(reader.bytes.is_empty() && reader.marks.is_empty(), "something is left");
        let value = reader.stack.pop().expect("a value");
        assert!(reader.stack.is_empty(), "and only one");
        value
    }

    pub(crate) fn integer(&self) -> u64 {
        match self {
            Self::Integer(value) => u64::try_from(*value).unwrap(),
            other => panic!("no integer: {other:?}"),
        }
    }

    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            other => panic!("no text: {other:?}"),
        }
    }

    pub(crate) fn list(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            other => panic!("no list: {other:?}"),
        }
    }

    /// The value of a key.
    pub(crate) fn at(&self, key: &str) -> &Self {
        let Self::Dictionary(items) = self else { panic!("no dictionary: {self:?}") };
        items.get(key).unwrap_or_else(|| panic!("no `{key}` in {items:?}"))
    }
}

/// Values that are read, and where groups of them begin.
struct Reader<'a> {
    bytes: &'a [u8],
    stack: Vec<Pickled>,
    marks: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, left) = self.bytes.split_at(count);
        self.bytes = left;
        taken
    }

    fn length(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }

    fn group(&mut self) -> Vec<Pickled> {
        let mark = self.marks.pop().expect("a mark");
        self.stack.split_off(mark)
    }

    /// Follows one opcode; `false` at the last.
    fn step(&mut self) -> bool {
        match self.take(1)[0] {
            b'.' => return false,
            b'(' => self.marks.push(self.stack.len()),
            b'}' => self.stack.push(Pickled::Dictionary(BTreeMap::new())),
            b']' => self.stack.push(Pickled::List(Vec::new())),
            b'K' => {
                let value = self.take(1)[0];
                self.stack.push(Pickled::Integer(i128::from(value)));
            }
            b'J' => {
                let value = i32::from_le_bytes(self.take(4).try_into().unwrap());
                self.stack.push(Pickled::Integer(i128::from(value)));
            }
            0x8a => {
                let count = usize::from(self.take(1)[0]);
                let bytes = self.take(count);
                // The last byte holds the sign.
                let value = bytes.iter().rev().fold(0_i128, |value, byte| value << 8 | i128::from(*byte));
                let is_negative = bytes.last().is_some_and(|byte| byte >> 7 == 1);
                self.stack.push(Pickled::Integer(if is_negative {
                    value - (1 << (8 * count))
                } else {
                    value
                }));
            }
            b'X' => {
                let count = self.length();
                let text = String::from_utf8(self.take(count).to_vec()).unwrap();
                self.stack.push(Pickled::Text(text));
            }
            b'e' => {
                let group = self.group();
                let Some(Pickled::List(items)) = self.stack.last_mut() else {
                    panic!("no list to append to")
                };
                items.extend(group);
            }
            b'u' => {
                let mut group = self.group().into_iter();
                let Some(Pickled::Dictionary(items)) = self.stack.last_mut() else { panic!("no dictionary") };
                while let Some(key) = group.next() {
                    let value = group.next().expect("a value for each key");
                    assert!(items.insert(key.text().to_owned(), value).is_none(), "{key:?} twice");
                }
            }
            other => panic!("opcode {other:#x}"),
        }
        true
    }
}
