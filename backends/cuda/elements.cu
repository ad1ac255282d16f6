// Numbers that the kernels share, and what they do with eight elements. It comes before walk.cu and metrics.cu.
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

constexpr int THREADS = 256, GROUP = 8, STEP = 4, UNIT = 8, SUMS = 11, BOUNDS = 8, BAD = 4, FIRST = 6;
constexpr u32 WIDE = THREADS * UNIT, TILE = WIDE * GROUP;
constexpr u64 NEVER = ~0ull;
constexpr float EPSILON = 2.220446049250313e-16f;

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

struct Half { u16 bits; };
struct Brain { u16 bits; };

#ifdef __CUDACC__
__device__ __forceinline__ float half_to_float(u16 bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

__device__ __forceinline__ float reciprocal(float value) {
    float found;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(found) : "f"(value));
    return found;
}

// The larger; NaN if either is.
__device__ __forceinline__ float max_or_nan(float x, float y) {
    float found;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(found) : "f"(x), "f"(y));
    return found;
}

__device__ __forceinline__ bool any_of_warp(bool mine) { return __any_sync(0xffffffffu, mine); }
__device__ __forceinline__ u32 least_of_warp(u32 mine) { return __reduce_min_sync(0xffffffffu, mine); }
__device__ __forceinline__ void join_warp() { __syncwarp(); }

// Copies from the device's memory to the block's that go on by themselves: one begun, a batch closed, and all but the
// last `LATER` batches of this thread there.
__device__ __forceinline__ void begin_copy(uint4 *to, const uint4 *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(u32(__cvta_generic_to_shared(to))), "l"(from) : "memory");
}
__device__ __forceinline__ void close_batch() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LATER> __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
}
constexpr int WARP = 32;
#else
constexpr int WARP = 1;
inline bool any_of_warp(bool mine) { return mine; }
inline u32 least_of_warp(u32 mine) { return mine; }
inline void join_warp() {}
inline void begin_copy(uint4 *to, const uint4 *from) { *to = *from; }
inline void close_batch() {}
template <int> inline void wait_for_copies() {}
#endif

template <class T> constexpr bool SHORT = sizeof(T) == 2;
template <class T> constexpr bool HALF = false;
template <> constexpr bool HALF<Half> = true;

__device__ __forceinline__ float infinity() { return __uint_as_float(0x7f800000u); }
__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(Half value) { return half_to_float(value.bits); }
__device__ __forceinline__ float widen(Brain value) { return __uint_as_float(u32(value.bits) << 16); }

// Eight elements as they lie in memory.
template <class T> struct alignas(16) Pack { u32 words[GROUP * sizeof(T) / 4]; };

template <class T> constexpr int QUADS = sizeof(Pack<T>) / 16;

template <class T> __device__ __forceinline__ void load(Pack<T> &to, const T *from) {
#pragma unroll
    for (int i = 0; i < QUADS<T>; i++) {
        const uint4 quad = __ldcs(reinterpret_cast<const uint4 *>(from) + i);
        u32 *words = to.words + 4 * i;
        words[0] = quad.x, words[1] = quad.y, words[2] = quad.z, words[3] = quad.w;
    }
}

// Where the threads of a block keep what is on its way to them.
typedef uint4 Slots[THREADS];

template <class T> __device__ __forceinline__ void begin_load(Slots *to, const T *from) {
#pragma unroll
    for (int i = 0; i < QUADS<T>; i++) begin_copy(&to[i][threadIdx.x], reinterpret_cast<const uint4 *>(from) + i);
}

template <class T> __device__ __forceinline__ void end_load(Pack<T> &to, const Slots *from) {
#pragma unroll
    for (int i = 0; i < QUADS<T>; i++) {
        const uint4 quad = from[i][threadIdx.x];
        u32 *words = to.words + 4 * i;
        words[0] = quad.x, words[1] = quad.y, words[2] = quad.z, words[3] = quad.w;
    }
}

template <class T> __device__ __forceinline__ void unpack(float *to, const Pack<T> &from) {
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        if constexpr (HALF<T>)
            to[k] = widen(Half{u16(from.words[k / 2] >> (k % 2 * 16))});
        else if constexpr (SHORT<T>)
            to[k] = __uint_as_float(k % 2 ? from.words[k / 2] & 0xffff0000u : from.words[k / 2] << 16);
        else
            to[k] = __uint_as_float(from.words[k]);
    }
}

// The bounds of one side's elements.
template <class T> struct Range {
    float least = infinity(), most = -infinity();
    __device__ __forceinline__ void take(const float *values, const Pack<T> &) {
#pragma unroll
        for (int k = 0; k < GROUP; k++) least = fminf(least, values[k]), most = fmaxf(most, values[k]);
    }
    __device__ __forceinline__ void give(float *low) const { low[0] = least, low[1] = -most; }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Two elements at a time.
#define PACKED_RANGE(T, SUFFIX, INFINITY)                                                                             \
    template <> struct Range<T> {                                                                                     \
        u32 least = INFINITY * 0x10001u, most = (INFINITY | 0x8000u) * 0x10001u;                                      \
        __device__ __forceinline__ void take(const float *, const Pack<T> &pack) {                                    \
            _Pragma("unroll") for (int i = 0; i < GROUP / 2; i++) {                                                   \
                asm("min." SUFFIX " %0, %0, %1;" : "+r"(least) : "r"(pack.words[i]));                                 \
                asm("max." SUFFIX " %0, %0, %1;" : "+r"(most) : "r"(pack.words[i]));                                       \
            }                                                                                                         \
        }                                                                                                             \
        __device__ __forceinline__ void give(float *low) const {                                                      \
            low[0] = fminf(widen(T{u16(least)}), widen(T{u16(least >> 16)}));                                         \
            low[1] = -fmaxf(widen(T{u16(most)}), widen(T{u16(most >> 16)}));                                          \
        }                                                                                                             \
    };
PACKED_RANGE(Half, "f16x2", 0x7c00u)
PACKED_RANGE(Brain, "bf16x2", 0x7f80u)
#endif

// Whether no magnitude of eight elements is below EPSILON.
template <class T> __device__ __forceinline__ bool large(const float *values, const Pack<T> &pack) {
    if constexpr (SHORT<T>) {
        u32 twice = ~0u;  // the least of each half, shifted left by one, which drops the sign
#pragma unroll
        for (int i = 0; i < GROUP / 2; i++) twice = __viaddmin_u16x2(pack.words[i], pack.words[i], twice);
        constexpr u32 LEAST = 0x4b000000u;  // EPSILON as bfloat16, shifted so
        return twice >= LEAST && twice << 16 >= LEAST;
    } else {
        float least = infinity();
#pragma unroll
        for (int k = 0; k < GROUP; k++) least = fminf(least, fabsf(values[k]));
        return least >= EPSILON;
    }
}

__device__ __forceinline__ float error_of(float a, float b) { return fabsf(a - b); }

__device__ __forceinline__ float divisor_of(float b) { return b == 0.0f ? EPSILON : fabsf(b); }

__device__ __forceinline__ float ratio_of(float error, float b) { return error / divisor_of(b); }

// error / divisor, correctly rounded, for what is `tame`. A reciprocal good to one unit in the last place
// and one correction round right where the divisor has at most 11 bits, for then no quotient lies within 2^-36 of a
// midpoint; 24 bits need a better reciprocal and a second correction (Markstein 1990).
template <bool FEW_BITS> __device__ __forceinline__ float quotient(float error, float divisor) {
    float inverse = reciprocal(divisor);
    if (!FEW_BITS) inverse = fmaf(fmaf(-divisor, inverse, 1.0f), inverse, inverse);
    float found = error * inverse;
    found = fmaf(fmaf(-divisor, found, error), inverse, found);
    if (!FEW_BITS) found = fmaf(fmaf(-divisor, found, error), inverse, found);
    return found;
}

__device__ __forceinline__ void count_over(u32 &over, float error, float ratio, float atol, float rtol) {
#if defined(__CUDA_ARCH__)
    asm("{\n .reg .pred p, q;\n setp.gtu.f32 p, %1, %3;\n setp.gtu.and.f32 q, %2, %4, p;\n @q add.u32 %0, %0, 1;\n}"
        : "+r"(over) : "f"(error), "f"(ratio), "f"(atol), "f"(rtol));
#else
    over += !(error <= atol) && !(ratio <= rtol);
#endif
}
