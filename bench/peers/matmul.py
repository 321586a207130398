"""Square matrix products by PyTorch (B1), measured as kiln-bench measures kiln's: in a graph, between two events."""

import json
import time

import torch

WARM_UP_SECONDS = 0.5
SIZES = [64, 512, 1024, 4096, 16384]


def random_bits(n, dtype):
    words = n * n * torch.empty(0, dtype=dtype).element_size() // 4
    return torch.randint(-(2**31), 2**31 - 1, (words,), dtype=torch.int32, device="cuda").view(dtype).view(n, n)


def product(name, n):
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32, "tf32": torch.float32, "f64": torch.float64, "f8": torch.float8_e4m3fn}[name]
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    a, b = random_bits(n, dtype), random_bits(n, dtype)
    if name == "f8":
        one = torch.ones((), device="cuda")
        out = torch.empty(n, n, dtype=torch.bfloat16, device="cuda")
        return lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, out=out)
    out = torch.empty(n, n, dtype=dtype, device="cuda")
    return lambda: torch.matmul(a, b.t(), out=out)


def device_time(call, calls):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    # At the clock that a device under load has, as kiln-bench measures.
    end = time.perf_counter() + WARM_UP_SECONDS
    while time.perf_counter() < end:
        graph.replay()
        torch.cuda.synchronize()
    times = []
    for _ in range(15):
        torch.cuda.synchronize()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e6 / calls)
    return sorted(times)[7]


def row(workload, value):
    print(json.dumps({"workload": workload, "subject": "PyTorch", "p50": value, "p99": value, "unit": "ns"}), flush=True)


for n in SIZES:
    for name in ["bf16", "f32", "tf32", "f64", "f8"]:
        call = product(name, n)
        call()
        torch.cuda.synchronize()
        calls = int(min(100, max(2, 20e6 / device_time(call, 1))))
        row(f"b1.{name}.{n}.device", device_time(call, calls))
        start = time.perf_counter_ns()
        for _ in range(calls):
            call()
        row(f"b1.{name}.{n}.submit", (time.perf_counter_ns() - start) / calls)
        torch.cuda.synchronize()
