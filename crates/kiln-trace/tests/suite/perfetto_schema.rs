//! The trace for Perfetto against Perfetto's published schema.
//!
//! The tables are written from the public reference of the format (perfetto.dev/docs/reference/trace-packet-proto, and the `.proto` files that it names): each
//! message, its fields as far as they are used, their numbers and types. The trace is read by these tables alone, so that a wrong number or type in
//! the exporter is a field that the tables do not have, or have with another wire type; and each field of the tables must be seen.

use std::collections::BTreeSet;
use std::io::Cursor;

use kiln_trace::{RecordingReader, export_perfetto};

use crate::protobuf::{Value, decode};
use crate::samples::{all_kinds, recorded};

/// The type of a field.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Type {
    Uint32,
    Uint64,
    Int64,
    Bool,
    /// An enumeration, and the values of it that are used.
    Enum(&'static [(u64, &'static str)]),
    Fixed64,
    Text,
    Message(&'static Message),
}

/// A message: its name, and the name, number and type of each field.
#[derive(PartialEq, Debug)]
struct Message {
    name: &'static str,
    fields: &'static [(&'static str, u32, Type)],
}

/// trace.proto
static TRACE: Message = Message { name: "Trace", fields: &[("packet", 1, Type::Message(&PACKET))] };

/// trace_packet.proto
static PACKET: Message = Message {
    name: "TracePacket",
    fields: &[
        ("clock_snapshot", 6, Type::Message(&CLOCK_SNAPSHOT)),
        ("timestamp", 8, Type::Uint64),
        ("trusted_packet_sequence_id", 10, Type::Uint32),
        ("track_event", 11, Type::Message(&TRACK_EVENT)),
        ("interned_data", 12, Type::Message(&INTERNED_DATA)),
        ("sequence_flags", 13, Type::Uint32),
        ("trace_packet_defaults", 59, Type::Message(&PACKET_DEFAULTS)),
        ("track_descriptor", 60, Type::Message(&TRACK_DESCRIPTOR)),
    ],
};

/// clock_snapshot.proto
static CLOCK_SNAPSHOT: Message =
    Message { name: "ClockSnapshot", fields: &[("clocks", 1, Type::Message(&CLOCK))] };
static CLOCK: Message = Message {
    name: "ClockSnapshot.Clock",
    fields: &[
        ("clock_id", 1, Type::Uint32),
        ("timestamp", 2, Type::Uint64),
        ("is_incremental", 3, Type::Bool),
    ],
};

/// trace_packet_defaults.proto and track_event.proto
static PACKET_DEFAULTS: Message = Message {
    name: "TracePacketDefaults",
    fields: &[
        ("track_event_defaults", 11, Type::Message(&TRACK_EVENT_DEFAULTS)),
        ("timestamp_clock_id", 58, Type::Uint32),
    ],
};
static TRACK_EVENT_DEFAULTS: Message =
    Message { name: "TrackEventDefaults", fields: &[("track_uuid", 11, Type::Uint64)] };

/// track_event.proto
static TRACK_EVENT: Message = Message {
    name: "TrackEvent",
    fields: &[
        ("debug_annotations", 4, Type::Message(&DEBUG_ANNOTATION)),
        (
            "type",
            9,
            Type::Enum(&[
                (1, "TYPE_SLICE_BEGIN"),
                (2, "TYPE_SLICE_END"),
                (3, "TYPE_INSTANT"),
                (4, "TYPE_COUNTER"),
            ]),
        ),
        ("name_iid", 10, Type::Uint64),
        ("counter_value", 30, Type::Int64),
        ("source_location_iid", 34, Type::Uint64),
        ("flow_ids", 47, Type::Fixed64),
        ("terminating_flow_ids", 48, Type::Fixed64),
    ],
};

/// debug_annotation.proto
static DEBUG_ANNOTATION: Message = Message {
    name: "DebugAnnotation",
    fields: &[
        ("name_iid", 1, Type::Uint64),
        ("uint_value", 3, Type::Uint64),
        ("string_value_iid", 17, Type::Uint64),
    ],
};

/// interned_data.proto
static INTERNED_DATA: Message = Message {
    name: "InternedData",
    fields: &[
        ("event_names", 2, Type::Message(&EVENT_NAME)),
        ("debug_annotation_names", 3, Type::Message(&DEBUG_ANNOTATION_NAME)),
        ("source_locations", 4, Type::Message(&SOURCE_LOCATION)),
        ("debug_annotation_string_values", 29, Type::Message(&INTERNED_STRING)),
    ],
};
static EVENT_NAME: Message =
    Message { name: "EventName", fields: &[("iid", 1, Type::Uint64), ("name", 2, Type::Text)] };
static DEBUG_ANNOTATION_NAME: Message =
    Message { name: "DebugAnnotationName", fields: &[("iid", 1, Type::Uint64), ("name", 2, Type::Text)] };
/// profile_common.proto, where its text is bytes
static INTERNED_STRING: Message =
    Message { name: "InternedString", fields: &[("iid", 1, Type::Uint64), ("str", 2, Type::Text)] };
static SOURCE_LOCATION: Message = Message {
    name: "SourceLocation",
    fields: &[("iid", 1, Type::Uint64), ("file_name", 2, Type::Text), ("line_number", 4, Type::Uint32)],
};

/// track_descriptor.proto and counter_descriptor.proto
static TRACK_DESCRIPTOR: Message = Message {
    name: "TrackDescriptor",
    fields: &[
        ("uuid", 1, Type::Uint64),
        ("name", 2, Type::Text),
        ("process", 3, Type::Message(&PROCESS_DESCRIPTOR)),
        ("parent_uuid", 5, Type::Uint64),
        ("counter", 8, Type::Message(&COUNTER_DESCRIPTOR)),
    ],
};
/// process_descriptor.proto, where the number is signed
static PROCESS_DESCRIPTOR: Message = Message {
    name: "ProcessDescriptor",
    fields: &[("pid", 1, Type::Uint32), ("process_name", 6, Type::Text)],
};
static COUNTER_DESCRIPTOR: Message =
    Message { name: "CounterDescriptor", fields: &[("unit", 3, Type::Enum(&[(3, "UNIT_SIZE_BYTES")]))] };

/// Reads a message by its table, and collects the fields and values that were seen.
fn read(message: &'static Message, bytes: &[u8], seen: &mut BTreeSet<String>) -> Result<(), String> {
    for (number, value) in decode(bytes) {
        let known = message.fields.iter().find(|(_, known, _)| *known == number);
        let (name, _, kind) = known.ok_or(format!("{} has no field {number}", message.name))?;
        let field = format!("{}.{name}", message.name);
        let wrong = format!("{field} is {kind:?} and was {value:?}");
        match (kind, &value) {
            (Type::Uint64 | Type::Int64, Value::Number(_)) | (Type::Fixed64, Value::Fixed(_)) => {}
            (Type::Uint32, Value::Number(number)) if u32::try_from(*number).is_ok() => {}
            (Type::Bool, Value::Number(0 | 1)) => {}
            (Type::Enum(values), Value::Number(number)) => {
                let known = values.iter().find(|(known, _)| known == number).ok_or(wrong)?;
                seen.insert(format!("{field}={}", known.1));
            }
            (Type::Text, Value::Bytes(bytes)) => drop(std::str::from_utf8(bytes).map_err(|_| wrong)?),
            (Type::Message(inner), Value::Bytes(bytes)) => read(inner, bytes, seen)?,
            _ => return Err(wrong),
        }
        seen.insert(field);
    }
    Ok(())
}

/// All fields and values of the tables.
fn all(message: &'static Message, fields: &mut BTreeSet<String>) {
    for (name, _, kind) in message.fields {
        let field = format!("{}.{name}", message.name);
        match kind {
            Type::Message(inner) => all(inner, fields),
            Type::Enum(values) => fields.extend(values.iter().map(|(_, value)| format!("{field}={value}"))),
            _ => {}
        }
        fields.insert(field);
    }
}

fn exported() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut reader = RecordingReader::new(Cursor::new(recorded(&all_kinds(), 5))).unwrap();
    export_perfetto(&mut reader, &mut bytes).unwrap();
    bytes
}

#[test]
fn every_field_is_one_of_the_published_schema_and_each_of_those_that_are_used_is_seen() {
    let (mut seen, mut known) = (BTreeSet::new(), BTreeSet::new());
    read(&TRACE, &exported(), &mut seen).unwrap();
    all(&TRACE, &mut known);
    assert_eq!(seen, known);
}

#[test]
fn a_wrong_number_or_type_is_noticed() {
    let bytes = exported();
    // The first byte of a packet is the key of its first field; the trace begins with a packet.
    assert_eq!(bytes[0], 1 << 3 | 2);
    for (key, why) in [(2 << 3 | 2, "Trace has no field 2"), (1 << 3 | 2, "")] {
        let mut changed = bytes.clone();
        changed[0] = key;
        let read = read(&TRACE, &changed, &mut BTreeSet::new());
        assert_eq!(read.err().unwrap_or_default(), why);
    }
    // A time as a text, a sequence under another number.
    for (packet, why) in [
        (&[8 << 3 | 2, 1, b'7'][..], "TracePacket.timestamp is Uint64"),
        (&[9 << 3, 1], "TracePacket has no field 9"),
        (&[10 << 3, 0xff, 0xff, 0xff, 0xff, 0x7f], "TracePacket.trusted_packet_sequence_id is Uint32"),
    ] {
        let error = read(&PACKET, packet, &mut BTreeSet::new()).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
}
