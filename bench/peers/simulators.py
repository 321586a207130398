"""How many elements a second saxpy does where there is no GPU: kiln's simulated device, numba's CUDA simulator and Triton's interpreter, in one run.

    python3 simulators.py [KILN]          KILN: the `kiln` command, `kiln` in the path unless given

Processor seconds of one core: of a thread or, for kiln, of its process, with the start of the command and the files. Each figure is the best of three.
kiln runs with all its checks; the others check nothing. A simulator that is not installed is named with the reason.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
os.environ["TRITON_INTERPRET"] = "1"

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %d<6>;
    ld.param.f32 %f1, [a];
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r2, %r2, %r3, %r4;
    setp.ge.u32 %p, %r2, %r1;
    @%p bra done;
    cvta.to.global.u64 %d3, %d1;
    cvta.to.global.u64 %d4, %d2;
    mul.wide.u32 %d5, %r2, 4;
    add.s64 %d3, %d3, %d5;
    add.s64 %d4, %d4, %d5;
    ld.global.f32 %f2, [%d3];
    ld.global.f32 %f3, [%d4];
    fma.rn.f32 %f2, %f2, %f1, %f3;
    st.global.f32 [%d4], %f2;
done:
    ret;
}
"""


def best(once, elements):
    return max(elements / once() for _ in range(3))


def arrays(elements):
    import numpy

    x = numpy.arange(elements, dtype=numpy.float32)
    return numpy, x, numpy.ones(elements, dtype=numpy.float32)


def numba_simulator(elements=4096):
    numpy, x, y = arrays(elements)
    global cuda  # The simulator replaces what kernels see under this name.
    from numba import cuda

    @cuda.jit
    def saxpy(a, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = a * x[i] + y[i]

    def once():
        out = y.copy()
        # The threads of the simulator are host threads: the time of the process.
        begin = time.process_time()
        saxpy[(elements + 255) // 256, 256](numpy.float32(2), x, out)
        taken = time.process_time() - begin
        assert (out == 2 * x + 1).all()
        return taken

    return best(once, elements)


def triton_interpreter(elements=1 << 20):
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def saxpy(a, x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(y + at, a * tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

    torch.set_num_threads(1)
    x = torch.arange(elements, dtype=torch.float32)

    def once():
        out = torch.ones(elements, dtype=torch.float32)
        begin = time.process_time()
        saxpy[(triton.cdiv(elements, 256),)](2.0, x, out, elements, BLOCK=256)
        taken = time.process_time() - begin
        assert bool((out == 2 * x + 1).all())
        return taken

    return best(once, elements)


def kiln(command, elements=1 << 22):
    numpy, x, y = arrays(elements)
    with tempfile.TemporaryDirectory() as folder:
        at = lambda name: os.path.join(folder, name)
        numpy.save(at("x.npy"), x)
        numpy.save(at("y.npy"), y)
        with open(at("saxpy.ptx"), "w") as file:
            file.write(PTX)
        words = [command, "run", at("saxpy.ptx"), "--device", "sim", "--grid", str(elements // 256), "--block", "256"]
        words += ["--arg", "f32:2", "--arg", "in:" + at("x.npy"), "--arg", f"inout:{at('y.npy')}:{at('out.npy')}"]
        words += ["--arg", f"u32:{elements}"]

        def once():
            def spent():
                used = resource.getrusage(resource.RUSAGE_CHILDREN)
                return used.ru_utime + used.ru_stime

            begin = spent()
            done = subprocess.run(words, capture_output=True, text=True)
            taken = spent() - begin
            if done.returncode != 0:
                raise OSError(done.stderr.strip() or f"it ended with {done.returncode}")
            assert (numpy.load(at("out.npy")) == 2 * x + 1).all()
            return taken

        return best(once, elements)


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else "kiln"
    rows = [
        ("kiln run, every check", lambda: kiln(command)),
        ("numba's CUDA simulator", numba_simulator),
        ("Triton's interpreter", triton_interpreter),
    ]
    for name, measure in rows:
        try:
            print(f"{name:26} {measure():16,.0f} elements a second", flush=True)
        except Exception as error:  # Whatever an absent or broken peer raises is told, and the others are measured.
            print(f"{name:26} absent: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)


if __name__ == "__main__":
    main()
