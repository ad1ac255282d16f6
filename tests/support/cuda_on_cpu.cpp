// The kernels of metrics.cu on the CPU: a thread for each CUDA thread of a block, blocks one after the other.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __shared__ static

struct Place {
    unsigned x;
};
static thread_local Place threadIdx, blockIdx;
static std::barrier<> *block_barrier;
static void __syncthreads() { block_barrier->arrive_and_wait(); }

static float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

static unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}

static float half_to_float(unsigned short bits) {
    _Float16 value;
    std::memcpy(&value, &bits, 2);
    return value;
}

static float reciprocal(float value) { return 1.0f / value; }

static float max_or_nan(float x, float y) { return x != x || y != y ? x + y : std::fmax(x, y); }

using std::max, std::min;

static unsigned __vimin3_u32(unsigned a, unsigned b, unsigned c) { return min(min(a, b), c); }
static unsigned __vimax3_u32(unsigned a, unsigned b, unsigned c) { return max(max(a, b), c); }
static unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c) {
    const unsigned low = min((a + b) & 0xffffu, c & 0xffffu), high = min((a >> 16) + (b >> 16) & 0xffffu, c >> 16);
    return high << 16 | low;
}

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static uint4 __ldcs(const uint4 *from) { return *from; }

static void atomicAdd(unsigned long long *to, unsigned long long value) { std::atomic_ref(*to).fetch_add(value); }

static void atomicMin(unsigned long long *to, unsigned long long value) {
    std::atomic_ref<unsigned long long> cell(*to);
    for (auto seen = cell.load(); value < seen && !cell.compare_exchange_weak(seen, value);) {
    }
}

#include "elements.cu"
#include "walk.cu"
#include "metrics.cu"

template <class Kernel> static void launch(unsigned blocks, Kernel kernel) {
    std::barrier<> barrier(THREADS);
    block_barrier = &barrier;
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < THREADS; thread++)
        threads.emplace_back([=, &barrier] {
            threadIdx.x = thread;
            for (unsigned block = 0; block < blocks; block++) {
                blockIdx.x = block;
                kernel();
                barrier.arrive_and_wait();
            }
        });
    for (auto &thread : threads) thread.join();
}

#define RUN(NAME)                                                                                                     \
    extern "C" void run_compare_##NAME(const Pair *pairs, const u32 *owner, Record *out, unsigned blocks, u64 first) {\
        launch(blocks, [=] { compare_##NAME(pairs, owner, out, first); });                                            \
    }                                                                                                                 \
    extern "C" void run_finish_##NAME(const Pair *pairs, const Record *parts, Record *out, unsigned blocks, u64 first) {\
        launch(blocks, [=] { finish_##NAME(pairs, parts, out, first); });                                             \
    }

RUN(float32_float32)
RUN(float32_float16)
RUN(float32_bfloat16)
RUN(float16_float32)
RUN(float16_float16)
RUN(float16_bfloat16)
RUN(bfloat16_float32)
RUN(bfloat16_float16)
RUN(bfloat16_bfloat16)
