"""Reads a trace with the schema that Perfetto publishes, and prints what it shows, a line for each event of a track.

It shares nothing with what writes the trace: messages are decoded by protobuf's own library, and names, clocks and tracks are resolved here.
"""

import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema


def check_known(message):
    """Refuses fields that the schema does not have, at every depth."""
    unknown = UnknownFieldSet(message)
    if len(unknown):
        sys.exit(f"{message.DESCRIPTOR.name} has unknown fields {[field.field_number for field in unknown]}")
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for inner in value if descriptor.is_repeated else [value]:
                check_known(inner)


def main():
    trace = schema.Trace()
    trace.ParseFromString(sys.stdin.buffer.read())
    check_known(trace)
    tracks, sequences = {}, {}
    for packet in trace.packet:
        known = sequences.setdefault(packet.trusted_packet_sequence_id, {"names": {}, "notes": {}, "texts": {}, "time": 0, "track": 0})
        if packet.HasField("trace_packet_defaults"):
            known["track"] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for name in packet.interned_data.event_names:
            known["names"][name.iid] = name.name
        for name in packet.interned_data.debug_annotation_names:
            known["notes"][name.iid] = name.name
        for text in packet.interned_data.debug_annotation_string_values:
            known["texts"][text.iid] = text.str.decode()
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            process = f"process {track.process.pid} " if track.HasField("process") else ""
            tracks[track.uuid] = process + track.name
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        known["time"] += packet.timestamp
        notes = []
        for note in event.debug_annotations:
            value = note.uint_value if note.HasField("uint_value") else known["texts"][note.string_value_iid]
            notes.append(f"{known['notes'][note.name_iid]}={value}")
        kind = schema.TrackEvent.Type.Name(event.type).removeprefix("TYPE_").lower()
        what = str(event.counter_value) if event.type == schema.TrackEvent.TYPE_COUNTER else known["names"].get(event.name_iid, "")
        flows = [f"from {flow}" for flow in event.flow_ids] + [f"to {flow}" for flow in event.terminating_flow_ids]
        print("|".join([tracks[known["track"]], str(known["time"]), kind, what, ", ".join(notes), " ".join(flows)]))


main()
