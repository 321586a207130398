"""Attention over 8,192 positions by PyTorch (B6), measured as kiln-bench measures kiln's: in a graph, between two events."""

import json

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

SEQUENCES, HEADS, POSITIONS, ELEMENTS = 1, 16, 8192, 128


def device_time(call, calls):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    graph.replay()
    times = []
    for _ in range(7):
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e6 / calls)
    return sorted(times)[3]


def numbers():
    # The heads of a position lie one after the other.
    shape = (SEQUENCES, POSITIONS, HEADS, ELEMENTS)
    return (torch.rand(shape, device="cuda") * 2 - 1).to(torch.bfloat16).transpose(1, 2)


q, k, v = numbers(), numbers(), numbers()
for name, is_causal in [("whole", False), ("causal", True)]:
    for subject, backend in [("PyTorch, cuDNN", SDPBackend.CUDNN_ATTENTION), ("PyTorch, flash", SDPBackend.FLASH_ATTENTION)]:
        with sdpa_kernel(backend), torch.no_grad():
            def call():
                return scaled_dot_product_attention(q, k, v, is_causal=is_causal)

            call()
            torch.cuda.synchronize()
            value = device_time(call, int(min(100, max(2, 20e6 / device_time(call, 1)))))
        print(json.dumps({"workload": f"b6.{name}.device", "subject": subject, "p50": value, "p99": value, "unit": "ns"}), flush=True)
