/* The CUDA runtime calls that Polygraphy makes through ctypes, over host memory: with it on LD_LIBRARY_PATH the real
 * Polygraphy runs on the fake TensorRT. */
#include <stdlib.h>
#include <string.h>

int cudaMalloc(void **at, size_t size) {
    *at = aligned_alloc(256, (size + 511) / 256 * 256);
    return *at ? 0 : 2;
}
int cudaFree(void *at) {
    free(at);
    return 0;
}
int cudaMemcpy(void *to, const void *from, size_t size, int kind) {
    (void)kind;
    memmove(to, from, size);
    return 0;
}
int cudaMemcpyAsync(void *to, const void *from, size_t size, int kind, void *stream) {
    (void)stream;
    return cudaMemcpy(to, from, size, kind);
}
int cudaStreamCreate(void **stream) {
    *stream = (void *)0x10;
    return 0;
}
int cudaStreamSynchronize(void *stream) {
    (void)stream;
    return 0;
}
int cudaStreamDestroy(void *stream) {
    (void)stream;
    return 0;
}
const char *cudaGetErrorString(int error) { return error ? "out of memory" : "no error"; }
