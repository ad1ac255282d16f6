/* A library that TensorRT's Python bindings can be loaded over: every factory returns one object, whose every
 * virtual method returns "nothing": zero as an integer (the object's address has 32 zero bits at its end), false,
 * 0.0, an empty string, an empty Dims or Weights; and, where a pointer is wanted, an object again.
 *
 * Compiled once a library with -DSYMBOLS=X(name)X(name)... and -DPLACE=address. x86-64 System V only. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 1024, FIRST = 0x100 };

extern void *class_type_info[] __asm__("_ZTVN10__cxxabiv117__class_type_infoE");

static const struct {
    void **vtable;
    const char *name;
} type = {&class_type_info[2], "4Stub"};

static int is_object(const void *p) {
    uintptr_t at = (uintptr_t)p;
    return at == 0x1000000000 || at == 0x2000000000 || at == 0x3000000000;
}

/* A method returning a struct in memory gets the place in front of `this`. */
static void *method(void *first, void *second) {
    void *result = (void *)PLACE;
    if (!is_object(first) && is_object(second)) {
        memset(first, 0, 24);
        result = first;
    }
    __asm__ volatile("pxor %%xmm0, %%xmm0" ::: "xmm0");
    return result;
}

/* The object: its first word is the address of its own table of methods, whose lowest byte is zero (so the object
 * read as a string is empty); every other word is the object again, so that any field that is a pointer is one. */
__attribute__((constructor)) static void make(void) {
    void **object = mmap((void *)PLACE, 0x10000, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (object != (void **)PLACE)
        __builtin_trap();
    for (int at = 0; at < 0x10000 / 8; at++)
        object[at] = object;
    void **vtable = object + FIRST;
    vtable[-2] = 0;
    vtable[-1] = (void *)&type;
    for (int at = 0; at < SLOTS; at++)
        vtable[at] = (void *)method;
    object[0] = vtable;
}

#define X(name) \
    void *name(void) { return (void *)PLACE; }
SYMBOLS
