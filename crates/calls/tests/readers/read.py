"""Reads a trace with Perfetto's own code and prints its slices and counters as JSON.

With the trace processor (named by TRACE_PROCESSOR, or on the path) it asks that. Otherwise it
decodes the packets with the schema of the package `perfetto`, refuses fields that the schema lacks,
and puts slices together by the documented rules.
"""

import json
import os
import shutil
import sys

TRACK_BEGIN, TRACK_END, TRACK_COUNTER = 1, 2, 4


def by_processor(shell, path):
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    config = TraceProcessorConfig(bin_path=shell)
    with TraceProcessor(trace=path, config=config) as processor:
        slices = [
            [row.thread, row.depth, row.name, row.category, row.ts, row.dur]
            for row in processor.query(
                "select thread.name as thread, depth, slice.name as name, category, ts, dur "
                "from slice join thread_track on slice.track_id = thread_track.id "
                "join thread using (utid) order by slice.id"
            )
        ]
        counters = {
            row.track: row.value
            for row in processor.query(
                "select track_id as track, max(value) as value from counter "
                "join track on counter.track_id = track.id "
                "where track.name = 'records lost' group by track_id"
            )
        }
        errors = [
            row.name
            for row in processor.query(
                "select name from stats where severity = 'error' and value > 0"
            )
        ]
        if errors:
            raise SystemExit(f"the trace processor reports {errors}")
    return slices, sum(counters.values())


def by_schema(path):
    from google.protobuf.unknown_fields import UnknownFieldSet
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

    def check(message):
        if len(UnknownFieldSet(message)) > 0:
            raise SystemExit(f"unknown fields in {message}")
        for field, value in message.ListFields():
            if field.message_type is not None:
                repeated = hasattr(value, "__len__") and not hasattr(value, "ListFields")
                for part in value if repeated else [value]:
                    check(part)

    trace = schema.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    check(trace)
    threads, counters, known, opened, slices, lost, last = {}, set(), {}, {}, [], {}, {}
    has_clocks = has_process = False
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            known[sequence] = ({}, {})
        if packet.HasField("interned_data"):
            names, categories = known[sequence]
            names.update((one.iid, one.name) for one in packet.interned_data.event_names)
            categories.update(
                (one.iid, one.name) for one in packet.interned_data.event_categories
            )
        has_clocks |= packet.HasField("clock_snapshot")
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            has_process |= track.HasField("process")
            if track.HasField("thread"):
                threads[track.uuid] = track.thread.thread_name
                opened[track.uuid] = []
            if track.HasField("counter"):
                assert track.parent_uuid in threads
                counters.add(track.uuid)
        if not packet.HasField("track_event"):
            continue
        event, now = packet.track_event, packet.timestamp
        assert now >= last.get(sequence, 0), "a sequence goes back in time"
        last[sequence] = now
        if event.type == TRACK_COUNTER:
            assert event.track_uuid in counters
            lost[event.track_uuid] = event.counter_value
            continue
        stack = opened[event.track_uuid]
        if event.type == TRACK_BEGIN:
            assert packet.sequence_flags & 2
            names, categories = known[sequence]
            name = names[event.name_iid] if event.name_iid else event.name
            category = ",".join(categories[iid] for iid in event.category_iids)
            thread = threads[event.track_uuid]
            stack.append(len(slices))
            slices.append([thread, len(stack) - 1, name, category, now, -1])
        else:
            assert event.type == TRACK_END and stack, "an end without a beginning"
            one = slices[stack.pop()]
            one[5] = now - one[4]
    assert has_clocks and has_process
    return slices, sum(lost.values())


try:
    import perfetto.protos  # noqa: F401
except ImportError:
    print(json.dumps({"reader": None}))
    sys.exit()
SHELL = os.environ.get("TRACE_PROCESSOR") or shutil.which("trace_processor_shell")
SLICES, LOST = by_processor(SHELL, sys.argv[1]) if SHELL else by_schema(sys.argv[1])
READER = "the trace processor" if SHELL else "the schema"
print(json.dumps({"reader": READER, "slices": SLICES, "lost": LOST}))
