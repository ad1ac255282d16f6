// How the threads of a block go through their part of a pair: the sums, bounds and counts of one record.
struct Sums {
    double sums[SUMS];
    u64 over;
};

// The bounds that a warp has met, joined with their tiles; a tile with nothing below `limits` holds nothing new.
struct alignas(16) Met {
    float limits[BOUNDS];
    u64 keys[BOUNDS];
};

// What a block met that is rare. keys: bounds and tiles as `key_of` joins them.
struct Rare {
    u64 count[BAD], first[FIRST], keys[BOUNDS];
};

__device__ __noinline__ void note_bad(Rare &rare, float a, float b, u64 place) {
    float error = error_of(a, b), ratio = ratio_of(error, b);
    const bool found[FIRST] = {a != a,           fabsf(a) == infinity(), b != b, fabsf(b) == infinity(),
                               error != error, ratio != ratio};
    for (int i = 0; i < FIRST; i++) {
        if (!found[i]) continue;
        if (i < BAD) atomicAdd(&rare.count[i], 1ull);
        atomicMin(&rare.first[i], place);
    }
}

// All sums but that of a^2.
__device__ __forceinline__ void add(double *sums, float x, float y, float ratio) {
    const double dx = x, dy = y, gap = dx - dy, part = ratio;
    sums[0] += dx, sums[2] += fabs(dx);
    sums[3] += dy, sums[4] += dy * dy, sums[5] += fabs(dy);
    sums[6] += fabs(gap), sums[7] += gap * gap, sums[8] += gap * dy;
    sums[9] += part, sums[10] += part * part;
}

// Bits in the order of the numbers; both zeros are one.
__device__ __forceinline__ u32 ordered(float value) {
    const u32 bits = __float_as_uint(value + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float unordered(u32 bits) {
    return __uint_as_float(bits & 0x80000000u ? bits & 0x7fffffffu : ~bits);
}

// A bound and its tile as one number: the least of them is the least bound, where it was met first.
__device__ __forceinline__ u64 key_of(u32 bits, u32 tile) { return u64(bits) << 32 | tile; }

// Take in a warp's bounds of a tile that comes after all that it had before. Other warps still need what is as low, for
// their tile may come first, but nothing higher. (A limit that is lowered late only costs them a look.)
__device__ __forceinline__ void keep(Met *met, const float *low, u32 tile) {
    Met &mine = met[threadIdx.x / WARP];
    const u32 lane = threadIdx.x % WARP;
    bool better = false;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) better |= low[i] < mine.limits[i];
    if (!any_of_warp(better)) return;
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) {
        if (!any_of_warp(low[i] < mine.limits[i])) continue;
        const u32 least = least_of_warp(ordered(low[i]));
        const float above = unordered(least + 1);
        if (lane < THREADS / WARP && above < met[lane].limits[i]) met[lane].limits[i] = above;
        join_warp();
        if (lane == 0) {
            mine.limits[i] = unordered(least);
            if (key_of(least, tile) < mine.keys[i]) mine.keys[i] = key_of(least, tile);
        }
    }
    join_warp();
}

// Absolute errors and divisors. False where divisors are so small, or errors so large or not finite, that only the full
// division rounds right. (A large divisor does no harm: the error is 0, or large too.)
template <class B>
__device__ __forceinline__ bool tame(float *error, float *divisor, const float *x, const float *y, const Pack<B> &b,
                                     float &worst) {
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        error[k] = error_of(x[k], y[k]), divisor[k] = fmaxf(fabsf(y[k]), EPSILON);
        worst = max_or_nan(worst, error[k]);
    }
    if (worst <= 1e15f && (HALF<B> || large(y, b))) return true;
    if (HALF<B> || !(worst <= 1e15f)) return false;
    float least = infinity();
#pragma unroll
    for (int k = 0; k < GROUP; k++) divisor[k] = divisor_of(y[k]), least = fminf(least, divisor[k]);
    return least >= 1e-21f;
}

// What a thread has of the tile that it is in.
template <class A, class B> struct Tile {
    Range<A> first;
    Range<B> second;
    u32 least = 0x7f800000u, most = 0;  // ratios, whose bits are in their order
    bool wanted;                        // the least error and ratio: not where the warp has met zeros before
    float low[BOUNDS];
    __device__ __forceinline__ Tile(const Met *met) {
        const float *limits = met[threadIdx.x / WARP].limits;
        wanted = limits[4] > 0.0f || limits[6] > 0.0f;
#pragma unroll
        for (int i = 0; i < BOUNDS; i++) low[i] = infinity();
    }
    __device__ __forceinline__ void close() {
        first.give(low), second.give(low + 2);
        low[6] = __uint_as_float(least);
        if (low[5] < infinity()) low[7] = -__uint_as_float(most);
    }
};

// Take in eight elements; false, and nothing taken, where they are not tame.
template <class A, class B>
__device__ __forceinline__ bool take(double *sums, Tile<A, B> &tile, u32 &over, const Pair &pair, const Pack<A> &a,
                                     const Pack<B> &b) {
    float x[GROUP], y[GROUP], error[GROUP], ratio[GROUP], worst = 0.0f;
    unpack(x, a), unpack(y, b);
    if (!tame<B>(error, ratio, x, y, b, worst)) return false;
    tile.first.take(x, a), tile.second.take(y, b);
    tile.low[5] = fminf(tile.low[5], -worst);
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        ratio[k] = quotient<SHORT<B>>(error[k], ratio[k]);
        count_over(over, error[k], ratio[k], pair.atol, pair.rtol);
        add(sums, x[k], y[k], ratio[k]);
    }
#pragma unroll
    for (int k = 0; k < GROUP; k += 2) {
        tile.most = __vimax3_u32(tile.most, __float_as_uint(ratio[k]), __float_as_uint(ratio[k + 1]));
    }
    if (tile.wanted) {
#pragma unroll
        for (int k = 0; k < GROUP; k += 2) {
            tile.low[4] = fminf(fminf(tile.low[4], error[k]), error[k + 1]);
            tile.least = __vimin3_u32(tile.least, __float_as_uint(ratio[k]), __float_as_uint(ratio[k + 1]));
        }
    }
    return true;
}

__device__ __forceinline__ void merge(Sums &mine, const Sums &other) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) mine.sums[i] += other.sums[i];
    mine.over += other.over;
}

template <class A, class B>
__device__ __forceinline__ void take_one(Sums &mine, Rare &rare, const Pair &pair, u64 place) {
    const float x = widen(reinterpret_cast<const A *>(pair.a)[place]);
    const float y = widen(reinterpret_cast<const B *>(pair.b)[place]);
    const float error = error_of(x, y), ratio = ratio_of(error, y);
    if (!(error < infinity())) note_bad(rare, x, y, place);
    const float low[BOUNDS] = {x, -x, y, -y, error, -error, ratio, -ratio};
#pragma unroll
    for (int i = 0; i < BOUNDS; i++) {
        const u64 key = key_of(ordered(low[i]), u32(place / TILE));
        if (low[i] == low[i] && key < rare.keys[i]) atomicMin(&rare.keys[i], key);
    }
    mine.over += !(error <= pair.atol) && !(ratio <= pair.rtol);
    add(mine.sums, x, y, ratio);
    mine.sums[1] += double(x) * x;
}

// Load eight elements that lie aligned; whether they are tame.
template <class A, class B> __device__ __forceinline__ bool tame_at(const Pair &pair, u64 place, float *x) {
    float y[GROUP], error[GROUP], divisor[GROUP], worst = 0.0f;
    Pack<A> a;
    Pack<B> b;
    load(a, reinterpret_cast<const A *>(pair.a) + place), load(b, reinterpret_cast<const B *>(pair.b) + place);
    unpack(x, a), unpack(y, b);
    return tame<B>(error, divisor, x, y, b, worst);
}

// One by one: what `take` refused this thread, or with `every` all of it, and what is left after the last whole group.
template <class A, class B>
__device__ __forceinline__ void take_rest(Sums &mine, Rare &rare, const Pair &pair, u32 block, bool refused,
                                          bool every) {
    const u64 groups = (pair.count + GROUP - 1) / GROUP, step = u64(pair.blocks) * WIDE;
    for (u64 start = u64(block) * WIDE; start < groups; start += step) {
        if (!every && !refused && start + WIDE < groups) continue;
        for (u64 group = start + threadIdx.x; group < groups && group < start + WIDE; group += THREADS) {
            const u64 place = group * GROUP, end = place + GROUP < pair.count ? place + GROUP : pair.count;
            const bool whole = end == place + GROUP;
            float x[GROUP];
            if (!every && whole && (!refused || tame_at<A, B>(pair, place, x))) continue;
#pragma unroll 1
            for (u64 one = place; one < end; one++) take_one<A, B>(mine, rare, pair, one);
        }
    }
}

// The sum of a^2 over what `take` took in, by itself.
template <class A, class B> __device__ __noinline__ double squares(const Pair &pair, u32 block) {
    const u32 groups = u32(pair.count / GROUP), step = pair.blocks * WIDE;
    double sum = 0.0;
    for (u32 start = block * WIDE; start < groups; start += step) {
        for (u32 group = start + threadIdx.x; group < groups && group < start + WIDE; group += THREADS) {
            float x[GROUP];
            if (!tame_at<A, B>(pair, u64(group) * GROUP, x)) continue;
#pragma unroll
            for (int k = 0; k < GROUP; k++) sum += double(x[k]) * x[k];
        }
    }
    return sum;
}

// The same from b^2 + 2 (a-b) b + (a-b)^2, which saves an addition an element; only where that loses no digit that
// counts, as it would where a is much smaller than b.
template <class A, class B> __device__ __forceinline__ double squares_of(const double *sums, const Pair &pair, u32 block) {
    const double parts = sums[4] + sums[7], found = parts + 2.0 * sums[8];
    return found >= 0.25 * parts ? found : squares<A, B>(pair, block);
}

// How many groups are loaded together while as many are taken in; it divides STEP.
template <class A, class B> constexpr int BATCH = SHORT<A> && SHORT<B> ? 2 : 1;

// All groups of a block's tiles, eight elements at a time. Whether some were refused.
template <class A, class B>
__device__ __forceinline__ bool take_groups(Sums &mine, Met *met, Slots *slots, const Pair &pair, u32 block) {
    constexpr int SIZE = BATCH<A, B>, WIDTH = QUADS<A> + QUADS<B>, STRIDE = THREADS * GROUP;
    const A *a = reinterpret_cast<const A *>(pair.a);
    const B *b = reinterpret_cast<const B *>(pair.b);
    const u32 groups = u32(pair.count / GROUP), whole = groups / WIDE * WIDE, step = pair.blocks * WIDE;
    bool refused = false;
    u32 start = block * WIDE, over = 0;
    const auto fetch = [&](int number, const A *x, const B *y) {
        for (int i = 0; i < SIZE; i++) {
            Slots *to = slots + (number + i) % (2 * SIZE) * WIDTH;
            begin_load(to, x + i * STRIDE), begin_load(to + QUADS<A>, y + i * STRIDE);
        }
        close_batch();
    };
    const auto place = [&](u32 group) { return u64(group + threadIdx.x) * GROUP; };
    const A *x = a + place(start);
    const B *y = b + place(start);
    if (start < whole) fetch(0, x, y);
#pragma unroll 1
    for (; start < whole; start += step) {
        Tile<A, B> tile(met);
#pragma unroll 1
        for (int done = STEP; done <= UNIT; done += STEP) {
            const u64 next = place(done < UNIT ? start + done * THREADS : min(start + step, whole - WIDE));
            const A *next_x = a + next;
            const B *next_y = b + next;
#pragma unroll
            for (int i = 0; i < STEP; i++) {
                if (i % SIZE == 0) {
                    const int late = i + SIZE;
                    late < STEP ? fetch(late, x + late * STRIDE, y + late * STRIDE) : fetch(0, next_x, next_y);
                    wait_for_copies<1>();
                }
                Pack<A> first;
                Pack<B> second;
                const Slots *from = slots + i % (2 * SIZE) * WIDTH;
                end_load(first, from), end_load(second, from + QUADS<A>);
                if (!take(mine.sums, tile, over, pair, first, second)) refused = true;
            }
            x = next_x, y = next_y;
        }
        tile.close();
        keep(met, tile.low, start / WIDE);
    }
    wait_for_copies<0>();
    if (start < groups) {
        Tile<A, B> tile(met);
#pragma unroll 1
        for (u32 group = start + threadIdx.x; group < groups; group += THREADS) {
            Pack<A> first;
            Pack<B> second;
            load(first, a + u64(group) * GROUP), load(second, b + u64(group) * GROUP);
            if (!take(mine.sums, tile, over, pair, first, second)) refused = true;
        }
        tile.close();
        keep(met, tile.low, start / WIDE);
    }
    mine.sums[1] = squares_of<A, B>(mine.sums, pair, block);
    mine.over = over;
    return refused;
}

template <class A, class B> __device__ __forceinline__ void compare(const Pair *pairs, const u32 *owner, Record *out,
                                                                    u64 first) {
    __shared__ Sums half[THREADS / 2];
    __shared__ Met met[THREADS / WARP];
    __shared__ Rare rare;
    __shared__ Slots slots[2 * BATCH<A, B> * (QUADS<A> + QUADS<B>)];
    const u32 block = u32(first) + blockIdx.x;
    const Pair pair = pairs[owner[block]];
    const u32 own = block - pair.first_block;
    if (threadIdx.x < FIRST) rare.first[threadIdx.x] = NEVER;
    if (threadIdx.x < BAD) rare.count[threadIdx.x] = 0;
    if (threadIdx.x < BOUNDS) rare.keys[threadIdx.x] = NEVER;
    if (threadIdx.x < THREADS / WARP)
        for (int i = 0; i < BOUNDS; i++) met[threadIdx.x].limits[i] = infinity(), met[threadIdx.x].keys[i] = NEVER;
    __syncthreads();
    const bool aligned = (pair.a | pair.b) % 16 == 0;
    Sums mine = {};
    const bool refused = aligned && take_groups<A, B>(mine, met, slots, pair, own);
    take_rest<A, B>(mine, rare, pair, own, refused, !aligned);
    for (u32 width = THREADS / 2; width; width /= 2) {
        if (threadIdx.x >= width && threadIdx.x < 2 * width) half[threadIdx.x - width] = mine;
        __syncthreads();
        if (threadIdx.x < width) merge(mine, half[threadIdx.x]);
        __syncthreads();
    }
    Record &record = out[block];
    if (threadIdx.x == 0) {
        for (int i = 0; i < SUMS; i++) record.sums[i] = mine.sums[i];
        record.over = mine.over;
    }
    if (threadIdx.x < BAD) record.bad[threadIdx.x] = rare.count[threadIdx.x];
    if (threadIdx.x < FIRST) record.first[threadIdx.x] = rare.first[threadIdx.x];
    if (threadIdx.x < BOUNDS) {
        u64 key = rare.keys[threadIdx.x];
        for (int i = 0; i < THREADS / WARP; i++) key = min(key, met[i].keys[threadIdx.x]);
        record.bounds[threadIdx.x] = key == NEVER ? infinity() : unordered(u32(key >> 32));
        record.places[threadIdx.x] = key == NEVER ? NEVER : u32(key);
    }
    __syncthreads();
}
