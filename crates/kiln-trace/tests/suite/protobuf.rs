//! A decoder of protocol buffers, for what the exporter writes. Field numbers are those of Perfetto's public schema
//! (`perfetto_trace.proto`); a field that is not listed here is an error.

use std::collections::HashMap;

/// A value on the wire.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Number(u64),
    Fixed(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message in their order.
pub(crate) type Message = Vec<(u32, Value)>;

pub(crate) fn decode(mut bytes: &[u8]) -> Message {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
                bytes = rest;
                Value::Fixed(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (text, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(text.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((u32::try_from(key >> 3).unwrap(), value));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a byte");
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

/// A message with the fields that it may have.
pub(crate) struct Fields(HashMap<u32, Vec<Value>>);

impl Fields {
    pub(crate) fn of(bytes: &[u8], known: &[u32]) -> Self {
        let mut fields: HashMap<u32, Vec<Value>> = HashMap::new();
        for (field, value) in decode(bytes) {
            assert!(known.contains(&field), "field {field} is not one of {known:?}");
            fields.entry(field).or_default().push(value);
        }
        Self(fields)
    }

    pub(crate) fn number(&self, field: u32) -> Option<u64> {
        match self.0.get(&field)?.as_slice() {
            [Value::Number(number)] => Some(*number),
            other => panic!("field {field}: {other:?}"),
        }
    }

    pub(crate) fn all_fixed(&self, field: u32) -> Vec<u64> {
        let fixed = |value: &Value| match value {
            Value::Fixed(number) => *number,
            other => panic!("field {field}: {other:?}"),
        };
        self.0.get(&field).map(|values| values.iter().map(fixed).collect()).unwrap_or_default()
    }

    pub(crate) fn all_bytes(&self, field: u32) -> Vec<&[u8]> {
        let bytes = |value: &'_ Value| match value {
            Value::Bytes(_) => (),
            other => panic!("field {field}: {other:?}"),
        };
        let values = self.0.get(&field).map(Vec::as_slice).unwrap_or_default();
        values.iter().for_each(bytes);
        values
            .iter()
            .filter_map(|value| if let Value::Bytes(bytes) = value { Some(&**bytes) } else { None })
            .collect()
    }

    pub(crate) fn bytes(&self, field: u32) -> Option<&[u8]> {
        self.all_bytes(field).first().copied()
    }

    pub(crate) fn text(&self, field: u32) -> Option<String> {
        self.bytes(field).map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
    }
}
