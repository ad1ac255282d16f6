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
#define __launch_bounds__(N)
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

static float half_to_float(unsigned short bits) {
    _Float16 value;
    std::memcpy(&value, &bits, 2);
    return value;
}

static void atomicAdd(unsigned long long *to, unsigned long long value) { std::atomic_ref(*to).fetch_add(value); }

static void atomicMin(unsigned long long *to, unsigned long long value) {
    std::atomic_ref<unsigned long long> cell(*to);
    for (auto seen = cell.load(); value < seen && !cell.compare_exchange_weak(seen, value);) {
    }
}

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
    extern "C" void run_##NAME(const Pair *pairs, const u32 *owner, Record *out, unsigned blocks, u64 first) {        \
        launch(blocks, [=] { NAME(pairs, owner, out, first); });                                                      \
    }

RUN(compare_float32_float32)
RUN(compare_float32_float16)
RUN(compare_float32_bfloat16)
RUN(compare_float16_float32)
RUN(compare_float16_float16)
RUN(compare_float16_bfloat16)
RUN(compare_bfloat16_float32)
RUN(compare_bfloat16_float16)
RUN(compare_bfloat16_bfloat16)

extern "C" void run_finish(const Pair *pairs, const Record *parts, Record *out, unsigned blocks) {
    launch(blocks, [=] { finish(pairs, parts, out); });
}
