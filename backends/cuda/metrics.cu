// One pass over pairs of tensors on the device: the sums, bounds and counts of debugtools/compare/arithmetic/moments.py.
//
// Work is in float32 (float16 and bfloat16 are exact in it), sums in float64. The order of every sum depends on the
// tensors alone, so results repeat to the last bit on every device. All bounds are kept as minima (maxima negated) with
// the tile where they were first met; `finish` looks up the place within it. What is rare (NaN, Inf, a quotient that
// the short division would not round right, what is not aligned) is left to a second, slow walk.
//
// 16-bit types are bound by the instructions issued, not by memory: an addition in float64 takes two turns of a
// scheduler, everything else one or more. So sums that follow from others are not taken, nor minima that cannot fall.

// What one block of `finish` joins of a pair's parts: a bound and its tile, and a share of the sums and counts.
struct Share {
    double sums[2];
    u64 count, first, tile;
    float bound;
};

__device__ __forceinline__ Share share_of(const Record &part, u32 i) {
    return {{part.sums[i], i + BOUNDS < SUMS ? part.sums[i + BOUNDS] : 0.0},
            i < BAD ? part.bad[i] : part.over,
            i < FIRST ? part.first[i] : NEVER,
            part.places[i],
            part.bounds[i]};
}

__device__ __forceinline__ void merge(Share &mine, const Share &other) {
    for (int i = 0; i < 2; i++) mine.sums[i] += other.sums[i];
    mine.count += other.count, mine.first = min(mine.first, other.first);
    const bool tie = other.bound == mine.bound && other.tile < mine.tile;
    if (other.bound < mine.bound || tie) mine.bound = other.bound, mine.tile = other.tile;
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

__device__ __forceinline__ void give(Record &to, u32 i, const Share &from, u64 place) {
    to.sums[i] = from.sums[0], to.bounds[i] = from.bound, to.places[i] = place;
    if (i + BOUNDS < SUMS) to.sums[i + BOUNDS] = from.sums[1];
    if (i < BAD) to.bad[i] = from.count;
    if (i == BAD) to.over = from.count;
    if (i < FIRST) to.first[i] = from.first;
}

// A block for each bound of a pair.
template <class A, class B> __device__ __forceinline__ void finish(const Pair *pairs, const Record *parts, Record *out,
                                                                   u64 first) {
    __shared__ Share half[THREADS / 2];
    __shared__ u64 place;
    const u32 number = u32(first) + blockIdx.x / BOUNDS, bound = blockIdx.x % BOUNDS;
    const Pair pair = pairs[number];
    Share mine = {{0.0, 0.0}, 0, NEVER, NEVER, infinity()};
    for (u32 part = threadIdx.x; part < pair.blocks; part += THREADS) {
        merge(mine, share_of(parts[pair.first_block + part], bound));
    }
    for (u32 width = THREADS / 2; width; width /= 2) {
        if (threadIdx.x >= width && threadIdx.x < 2 * width) half[threadIdx.x - width] = mine;
        __syncthreads();
        if (threadIdx.x < width) merge(mine, half[threadIdx.x]);
        __syncthreads();
    }
    if (threadIdx.x == 0) half[0] = mine, place = NEVER;
    __syncthreads();
    if (half[0].tile != NEVER) find<A, B>(place, pair, bound, half[0].bound, half[0].tile);
    __syncthreads();
    if (threadIdx.x == 0) give(out[number], bound, mine, place);
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
