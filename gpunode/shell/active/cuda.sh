# shellcheck shell=sh disable=SC2034,SC2154
# Each GPU adds two vectors and keeps a pattern in its memory, through libcuda alone. The kernel is PTX, which the driver
# compiles for the GPU that is there. The host's own Python calls libcuda, with its standard library (ctypes).
#
# sm_50: what every driver of a branch that still lives compiles (PTX runs on all later GPUs); Kepler is older.

gpunode_cuda='
import ctypes, sys

PTX = b"""
.version 6.0
.target sm_50
.address_size 64

.visible .entry gpunode_sum(
    .param .u64 first, .param .u64 second, .param .u64 sums, .param .u32 count)
{
    .reg .pred %done;
    .reg .b32 %r<8>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [first];
    ld.param.u64 %d2, [second];
    ld.param.u64 %d3, [sums];
    ld.param.u32 %r1, [count];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    cvta.to.global.u64 %d3, %d3;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    setp.ge.u32 %done, %r5, %r1;
    @%done bra end;
    mul.wide.u32 %d4, %r5, 4;
    add.u64 %d1, %d1, %d4;
    add.u64 %d2, %d2, %d4;
    add.u64 %d3, %d3, %d4;
    ld.global.u32 %r6, [%d1];
    ld.global.u32 %r7, [%d2];
    add.u32 %r6, %r6, %r7;
    st.global.u32 [%d3], %r6;
end:
    ret;
}
\0"""
COUNT, BLOCK = 1 << 20, 256
PATTERN_BYTES = 64 << 20
PATTERNS = (0x55555555, 0xAAAAAAAA, 0)


class Failed(Exception):
    pass


def say(*words):
    print(*words, flush=True)


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        text = ctypes.c_char_p()
        known = cuda.cuGetErrorName(code, ctypes.byref(text)) == 0 and text.value
        raise Failed("{} {} {}".format(name, code, known.decode("ascii", "replace") if known else "-"))


def allocated(size):
    address = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
    return address


def vectors(module):
    function = ctypes.c_void_p()
    call("cuModuleGetFunction", ctypes.byref(function), module, b"gpunode_sum")
    values = ctypes.c_uint32 * COUNT
    first, second, sums = values(*range(COUNT)), values(*range(7, COUNT + 7)), values()
    on_gpu = [allocated(COUNT * 4) for _ in range(3)]
    for address, source in zip(on_gpu, (first, second)):
        call("cuMemcpyHtoD_v2", address, source, ctypes.c_size_t(COUNT * 4))
    given = [*on_gpu, ctypes.c_uint32(COUNT)]
    pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(one) for one in given))
    size = [ctypes.c_uint(n) for n in (COUNT // BLOCK, 1, 1, BLOCK, 1, 1, 0)]
    call("cuLaunchKernel", function, *size, None, pointers, None)
    call("cuCtxSynchronize")
    call("cuMemcpyDtoH_v2", sums, on_gpu[2], ctypes.c_size_t(COUNT * 4))
    for address in on_gpu:
        call("cuMemFree_v2", address)
    return sum(1 for n, got in enumerate(sums) if got != 2 * n + 7)


def memory():
    free, whole = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(whole))
    size = min(PATTERN_BYTES, free.value // 2) & ~4095
    if not size:
        return 0, 0
    address, back, wrong = allocated(size), ctypes.create_string_buffer(size), 0
    for pattern in PATTERNS:
        call("cuMemsetD32_v2", address, ctypes.c_uint(pattern), ctypes.c_size_t(size // 4))
        call("cuMemcpyDtoH_v2", back, address, ctypes.c_size_t(size))
        if back.raw != pattern.to_bytes(4, sys.byteorder) * (size // 4):
            wrong += 1
    call("cuMemFree_v2", address)
    return size, wrong


def tried(number):
    device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
    where = ctypes.create_string_buffer(32)
    call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(number))
    call("cuDeviceGetPCIBusId", where, ctypes.c_int(32), device)
    at = where.value.decode("ascii", "replace")
    try:
        call("cuCtxCreate_v2", ctypes.byref(context), ctypes.c_uint(0), device)
        try:
            call("cuModuleLoadData", ctypes.byref(module), PTX)
            wrong = vectors(module)
            say("sum", at, "ok" if not wrong else "wrong {} of {}".format(wrong, COUNT))
            size, bad = memory()
            say("memory", at, size, bad)
        finally:
            cuda.cuCtxDestroy_v2(context)
    except Failed as error:
        say("failed", at, error)


try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    say("missing", error)
    sys.exit(0)
try:
    count = ctypes.c_int()
    call("cuInit", ctypes.c_uint(0))
    call("cuDeviceGetCount", ctypes.byref(count))
    for number in range(min(count.value, 64)):
        tried(number)
    say("devices", count.value)
except Failed as error:
    say("failed", "-", error)
'

cuda() {
  for name in python3 /usr/libexec/platform-python; do # EL keeps its own one out of PATH
    gpunode_tool "$name" || continue
    within cuda 180 "$TOOL" -I -c "$gpunode_cuda"
    said cuda cuda
    return
  done
  unsaid cuda 'there is no python3 that root alone decides about, and it is what calls libcuda'
}
