// One pass over pairs of tensors on the device: the sums, bounds and counts of debugtools/compare/moments.py.
//
// Work is in float32 (float16 and bfloat16 are exact in it), sums in float64. The order of every sum depends on the
// number of elements alone, so results repeat to the last bit on every device. All bounds are kept as minima (maxima
// negated) with the group of 8 elements where they were first met; the place within it is looked up at the end.
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int THREADS = 256, GROUP = 8, SUMS = 11, BOUNDS = 8, BAD = 4, FIRST = 6;
constexpr u32 NOWHERE = 0xffffffffu;
constexpr u64 NEVER = ~0ull;

struct Pair {
    u64 a, b, count;
    u32 first_block, blocks;
    float atol, rtol;
};

// sums: a, a^2, |a|, b, b^2, |b|, |a-b|, (a-b)^2, (a-b)b, ratio, ratio^2. bounds: a, b, |a-b|, ratio, low and -high each.
// bad: NaN and Inf of a and of b. first: their first places, and those of NaN in |a-b| and ratio.
struct Record {
    double sums[SUMS];
    u64 over, bad[BAD], first[FIRST], places[BOUNDS];
    float bounds[BOUNDS];
};

#ifdef __CUDACC__
__device__ __forceinline__ float half_to_float(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
#endif

struct Half { u16 bits; };
struct Brain { u16 bits; };

__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(Half value) { return half_to_float(value.bits); }
__device__ __forceinline__ float widen(Brain value) { return __uint_as_float(u32(value.bits) << 16); }

template <class T> struct alignas(16) Pack { T at[16 / sizeof(T)]; };

template <class T> __device__ __forceinline__ void load(float *to, const T *from, bool aligned) {
    constexpr int packed = 16 / sizeof(T);
    if (aligned) {
#pragma unroll
        for (int i = 0; i < GROUP / packed; i++) {
            Pack<T> pack = reinterpret_cast<const Pack<T> *>(from)[i];
#pragma unroll
            for (int k = 0; k < packed; k++) to[i * packed + k] = widen(pack.at[k]);
        }
    } else {
#pragma unroll
        for (int k = 0; k < GROUP; k++) to[k] = widen(from[k]);
    }
}

__device__ __forceinline__ float error_of(float a, float b) { return fabsf(a - b); }

__device__ __forceinline__ float ratio_of(float error, float b) {
    float magnitude = fabsf(b);
    return error / (magnitude == 0.0f ? 2.220446049250313e-16f : magnitude);
}

struct Sums {
    double sums[SUMS];
    u64 over;
    float bounds[BOUNDS];
    u32 at[BOUNDS];
};

struct Bad {
    u64 count[BAD], first[FIRST];
};

__device__ __forceinline__ void clear(Sums &mine) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) mine.sums[i] = 0.0;
    mine.over = 0;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) mine.bounds[i] = infinity(), mine.at[i] = NOWHERE;
}

__device__ __noinline__ void note_bad(Bad &bad, float a, float b, u64 place) {
    float error = error_of(a, b), ratio = ratio_of(error, b);
    const bool found[FIRST] = {a != a,           fabsf(a) == infinity(), b != b, fabsf(b) == infinity(),
                               error != error, ratio != ratio};
    for (int i = 0; i < FIRST; i++) {
        if (!found[i]) continue;
        if (i < BAD) atomicAdd(&bad.count[i], 1ull);
        atomicMin(&bad.first[i], place);
    }
}

__device__ __forceinline__ void take(Sums &mine, Bad &bad, const Pair &pair, const float *a, const float *b, int count,
                                     u32 group) {
    float low[BOUNDS];
    bool finite = true;
    u32 over = 0;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) low[i] = infinity();
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        if (k >= count) continue;
        const float x = a[k], y = b[k], error = error_of(x, y), ratio = ratio_of(error, y);
        over += !(error <= pair.atol) && !(ratio <= pair.rtol);
        finite = finite && error < infinity();
        low[0] = fminf(low[0], x), low[1] = fminf(low[1], -x), low[2] = fminf(low[2], y), low[3] = fminf(low[3], -y);
        low[4] = fminf(low[4], error), low[5] = fminf(low[5], -error);
        low[6] = fminf(low[6], ratio), low[7] = fminf(low[7], -ratio);
        const double dx = x, dy = y, gap = dx - dy, part = ratio;
        mine.sums[0] += dx, mine.sums[1] += dx * dx, mine.sums[2] += fabs(dx);
        mine.sums[3] += dy, mine.sums[4] += dy * dy, mine.sums[5] += fabs(dy);
        mine.sums[6] += fabs(gap), mine.sums[7] += gap * gap, mine.sums[8] += gap * dy;
        mine.sums[9] += part, mine.sums[10] += part * part;
    }
    mine.over += over;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++)
        if (low[i] < mine.bounds[i]) mine.bounds[i] = low[i], mine.at[i] = group;
    if (!finite)
        for (int k = 0; k < count; k++) note_bad(bad, a[k], b[k], u64(group) * GROUP + k);
}

__device__ __forceinline__ void merge(Sums &mine, const Sums &other) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) mine.sums[i] += other.sums[i];
    mine.over += other.over;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) {
        const bool tie = other.bounds[i] == mine.bounds[i] && other.at[i] < mine.at[i];
        if (other.bounds[i] < mine.bounds[i] || tie) mine.bounds[i] = other.bounds[i], mine.at[i] = other.at[i];
    }
}

template <class A, class B> __device__ u64 place_of(const Pair &pair, int bound, float value, u32 group) {
    const A *a = reinterpret_cast<const A *>(pair.a);
    const B *b = reinterpret_cast<const B *>(pair.b);
    const u64 start = u64(group) * GROUP;
    for (u64 i = start; group != NOWHERE && i < start + GROUP && i < pair.count; i++) {
        const float x = widen(a[i]), y = widen(b[i]), error = error_of(x, y);
        const float found[4] = {x, y, error, ratio_of(error, y)};
        if (found[bound / 2] == (bound % 2 ? -value : value)) return i;
    }
    return NEVER;
}

template <class A, class B> __device__ __forceinline__ void compare(const Pair *pairs, const u32 *owner, Record *out,
                                                                    u64 first) {
    __shared__ Sums half[THREADS / 2];
    __shared__ Bad bad;
    const u32 block = u32(first) + blockIdx.x;
    const Pair pair = pairs[owner[block]];
    const u32 thread = (block - pair.first_block) * THREADS + threadIdx.x, step = pair.blocks * THREADS;
    if (threadIdx.x < FIRST) bad.first[threadIdx.x] = NEVER;
    if (threadIdx.x < BAD) bad.count[threadIdx.x] = 0;
    __syncthreads();
    const A *a = reinterpret_cast<const A *>(pair.a);
    const B *b = reinterpret_cast<const B *>(pair.b);
    const bool a_aligned = pair.a % 16 == 0, b_aligned = pair.b % 16 == 0;
    const u64 groups = pair.count / GROUP;
    Sums mine;
    clear(mine);
    for (u64 group = thread; group < groups; group += step) {
        float x[GROUP], y[GROUP];
        load(x, a + group * GROUP, a_aligned);
        load(y, b + group * GROUP, b_aligned);
        take(mine, bad, pair, x, y, GROUP, u32(group));
    }
    const int rest = int(pair.count % GROUP);
    if (rest && groups % step == thread) {
        float x[GROUP], y[GROUP];
        for (int k = 0; k < rest; k++) x[k] = widen(a[groups * GROUP + k]), y[k] = widen(b[groups * GROUP + k]);
        take(mine, bad, pair, x, y, rest, u32(groups));
    }
    for (u32 width = THREADS / 2; width; width /= 2) {
        if (threadIdx.x >= width && threadIdx.x < 2 * width) half[threadIdx.x - width] = mine;
        __syncthreads();
        if (threadIdx.x < width) merge(mine, half[threadIdx.x]);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        half[0] = mine;
        Record &record = out[block];
        for (int i = 0; i < SUMS; i++) record.sums[i] = mine.sums[i];
        for (int i = 0; i < BAD; i++) record.bad[i] = bad.count[i];
        for (int i = 0; i < FIRST; i++) record.first[i] = bad.first[i];
        record.over = mine.over;
    }
    __syncthreads();
    if (threadIdx.x < BOUNDS) {
        const float value = half[0].bounds[threadIdx.x];
        out[block].bounds[threadIdx.x] = value;
        out[block].places[threadIdx.x] = place_of<A, B>(pair, threadIdx.x, value, half[0].at[threadIdx.x]);
    }
    __syncthreads();
}

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

extern "C" __global__ void __launch_bounds__(THREADS) finish(const Pair *pairs, const Record *parts, Record *out) {
    __shared__ Record half[THREADS / 2];
    const Pair pair = pairs[blockIdx.x];
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
    if (threadIdx.x == 0) out[blockIdx.x] = mine;
}

#define KERNEL(NAME, A, B)                                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                                              \
        NAME(const Pair *pairs, const u32 *owner, Record *out, u64 first) {                                           \
        compare<A, B>(pairs, owner, out, first);                                                                      \
    }

KERNEL(compare_float32_float32, float, float)
KERNEL(compare_float32_float16, float, Half)
KERNEL(compare_float32_bfloat16, float, Brain)
KERNEL(compare_float16_float32, Half, float)
KERNEL(compare_float16_float16, Half, Half)
KERNEL(compare_float16_bfloat16, Half, Brain)
KERNEL(compare_bfloat16_float32, Brain, float)
KERNEL(compare_bfloat16_float16, Brain, Half)
KERNEL(compare_bfloat16_bfloat16, Brain, Brain)
