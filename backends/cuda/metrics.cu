// One pass over pairs of tensors on the device: the sums, bounds and counts of debugtools/compare/moments.py.
//
// Work is in float32 (float16 and bfloat16 are exact in it), sums in float64. The order of every sum depends on the
// tensors alone, so results repeat to the last bit on every device. All bounds are kept as minima (maxima negated) with
// the tile where they were first met; `finish` looks up the place within it. What is rare (NaN, Inf, a quotient that
// the short division would not round right, what is not aligned) is left to a second, slow walk.
//
// 16-bit types are bound by the instructions issued, not by memory: an addition in float64 takes two turns of a
// scheduler, everything else one or more. So sums that follow from others are not taken, nor minima that cannot fall.
__device__ void merge(Record &mine, const Record &other) {
    for (int i = 0; i < SUMS; i++) mine.sums[i] += other.sums[i];
    for (int i = 0; i < BAD; i++) mine.bad[i] += other.bad[i];
    for (int i = 0; i < FIRST; i++) mine.first[i] = other.first[i] < mine.first[i] ? other.first[i] : mine.first[i];
    mine.over += other.over;
    for (int i = 0; i < BOUNDS; i++) {
        const bool tie = other.bounds[i] == mine.bounds[i] && other.places[i] < mine.places[i];
        if (other.bounds[i] < mine.bounds[i] || tie) mine.bounds[i] = other.bounds[i], mine.places[i] = other.places[i];
    }
}

__device__ __forceinline__ float quantity(int bound, float x, float y) {
    if (bound < 2) return x;
    if (bound < 4) return y;
    return bound < 6 ? error_of(x, y) : ratio_of(error_of(x, y), y);
}

// The first place of a bound, in the tile where it was met.
template <class A, class B>
__device__ __forceinline__ void find(u64 &to, const Pair &pair, int bound, float value, u64 tile) {
    const A *a = reinterpret_cast<const A *>(pair.a);
    const B *b = reinterpret_cast<const B *>(pair.b);
    const u64 start = tile * TILE, last = start + TILE < pair.count ? start + TILE : pair.count;
    const float sought = bound % 2 ? -value : value;
    u64 found = NEVER;
#pragma unroll 8
    for (int i = 0; i < int(TILE / THREADS); i++) {
        const u64 place = min(start + i * THREADS + threadIdx.x, last - 1);
        if (quantity(bound, widen(a[place]), widen(b[place])) == sought) found = min(found, place);
    }
    if (found != NEVER) atomicMin(&to, found);
}

__device__ void give(Record &to, const Record &from) {
    for (int i = 0; i < SUMS; i++) to.sums[i] = from.sums[i];
    for (int i = 0; i < BAD; i++) to.bad[i] = from.bad[i];
    for (int i = 0; i < FIRST; i++) to.first[i] = from.first[i];
    for (int i = 0; i < BOUNDS; i++) to.bounds[i] = from.bounds[i];
    to.over = from.over;
}

// A block for each bound of a pair; all join the parts, the first gives all but the places.
template <class A, class B> __device__ __forceinline__ void finish(const Pair *pairs, const Record *parts, Record *out,
                                                                   u64 first) {
    __shared__ Record half[THREADS / 2];
    __shared__ u64 place;
    const u32 number = u32(first) + blockIdx.x / BOUNDS, bound = blockIdx.x % BOUNDS;
    const Pair pair = pairs[number];
    Record mine;
    for (int i = 0; i < SUMS; i++) mine.sums[i] = 0.0;
    for (int i = 0; i < BAD; i++) mine.bad[i] = 0;
    for (int i = 0; i < FIRST; i++) mine.first[i] = NEVER;
    for (int i = 0; i < BOUNDS; i++) mine.bounds[i] = infinity(), mine.places[i] = NEVER;
    mine.over = 0;
    for (u32 part = threadIdx.x; part < pair.blocks; part += THREADS) merge(mine, parts[pair.first_block + part]);
    for (u32 width = THREADS / 2; width; width /= 2) {
        if (threadIdx.x >= width && threadIdx.x < 2 * width) half[threadIdx.x - width] = mine;
        __syncthreads();
        if (threadIdx.x < width) merge(mine, half[threadIdx.x]);
        __syncthreads();
    }
    if (threadIdx.x == 0) half[0] = mine, place = NEVER;
    __syncthreads();
    const u64 tile = half[0].places[bound];
    if (tile != NEVER) find<A, B>(place, pair, bound, half[0].bounds[bound], tile);
    __syncthreads();
    if (threadIdx.x == 0) {
        out[number].places[bound] = place;
        if (bound == 0) give(out[number], mine);
    }
    __syncthreads();
}

#define KERNELS(NAME, A, B)                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS, 2)                                                           \
        compare_##NAME(const Pair *pairs, const u32 *owner, Record *out, u64 first) {                                 \
        compare<A, B>(pairs, owner, out, first);                                                                      \
    }                                                                                                                 \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        finish_##NAME(const Pair *pairs, const Record *parts, Record *out, u64 first) {                               \
        finish<A, B>(pairs, parts, out, first);                                                                       \
    }
#define KERNELS_OF(NAME, A, B) KERNELS(NAME, A, B)

#ifdef TYPES  // one pair of types alone
KERNELS_OF(TYPES, FIRST_TYPE, SECOND_TYPE)
#else
KERNELS(float32_float32, float, float)
KERNELS(float32_float16, float, Half)
KERNELS(float32_bfloat16, float, Brain)
KERNELS(float16_float32, Half, float)
KERNELS(float16_float16, Half, Half)
KERNELS(float16_bfloat16, Half, Brain)
KERNELS(bfloat16_float32, Brain, float)
KERNELS(bfloat16_float16, Brain, Half)
KERNELS(bfloat16_bfloat16, Brain, Brain)
#endif
