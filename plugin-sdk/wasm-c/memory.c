/* Memory: the allocator of the C library, and the memory of one call.
 *
 * A block has a class of size, four classes to each doubling, and goes back to the list of its class. Memory that was
 * never used comes from the end of what is in use. There is one thread. */
#include "door.h"

enum { UNIT = 16, CLASSES = 112, PAGE = 65536 };
/* More would not fit into the memory of a component. */
#define LARGEST ((size_t)1 << 31)

/* Stands before each block, and keeps it aligned. */
typedef struct Header {
    uint32_t class;
    uint32_t unused[3];
} Header;

typedef struct Free {
    struct Free *next;
} Free;

extern uint8_t __heap_base;

static Free *free_blocks[CLASSES];
/* Where unused memory begins and ends. */
static uintptr_t unused, end;

/* Classes of 1, 2, 3 and 4 units, then of 5, 6, 7, 8, 10, 12, 14, 16, 20, … units. */
static uint32_t class_of(size_t size) {
    uint32_t units = size ? (uint32_t)((size + UNIT - 1) / UNIT) : 1, doublings;
    if (units <= 4) return units - 1;
    doublings = 29 - (uint32_t)__builtin_clz(units - 1);
    return 4 * doublings + ((units - 1) >> doublings);
}

static size_t size_of(uint32_t class) {
    if (class < 4) return (class + 1) * UNIT;
    return ((size_t)(class % 4 + 5) << (class / 4 - 1)) * UNIT;
}

/* Moves the end of used memory; 0 where the host has no more. */
static int use(uintptr_t to) {
    if (to > end) {
        uintptr_t pages = (to - end + PAGE - 1) / PAGE;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return 0;
        end += pages * PAGE;
    }
    unused = to;
    return 1;
}

void *malloc(size_t size) {
    uint32_t class;
    Header *header;
    if (size > LARGEST) return NULL;
    class = class_of(size);
    if (free_blocks[class]) {
        Free *block = free_blocks[class];
        free_blocks[class] = block->next;
        return block;
    }
    if (!unused) {
        unused = ((uintptr_t)&__heap_base + UNIT - 1) & ~(uintptr_t)(UNIT - 1);
        end = __builtin_wasm_memory_size(0) * PAGE;
    }
    header = (Header *)unused;
    if (!use(unused + sizeof *header + size_of(class))) return NULL;
    header->class = class;
    return header + 1;
}

void free(void *block) {
    Free *freed = block;
    uint32_t class;
    if (!block) return;
    class = ((Header *)block - 1)->class;
    freed->next = free_blocks[class];
    free_blocks[class] = freed;
}

void *calloc(size_t count, size_t size) {
    size_t bytes;
    void *block;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    block = malloc(bytes);
    return block ? memset(block, 0, bytes) : NULL;
}

void *realloc(void *block, size_t size) {
    Header *header = (Header *)block - 1;
    size_t room;
    void *moved;
    if (!block) return malloc(size);
    if (size > LARGEST) return NULL;
    room = size_of(header->class);
    if (size <= room) return block;
    if ((uintptr_t)block + room == unused) {
        /* The last block grows where it is. */
        uint32_t class = class_of(size);
        if (!use((uintptr_t)block + size_of(class))) return NULL;
        header->class = class;
        return block;
    }
    moved = malloc(size);
    if (!moved) return NULL;
    memcpy(moved, block, room);
    free(block);
    return moved;
}

/* new and delete of C++, under the names that they have for a linker. */
void *operator_new(size_t size) __asm__("_Znwm");
void *operator_new_array(size_t size) __asm__("_Znam");
void operator_delete(void *block) __asm__("_ZdlPv");
void operator_delete_array(void *block) __asm__("_ZdaPv");
void operator_delete_sized(void *block, size_t size) __asm__("_ZdlPvm");
void operator_delete_array_sized(void *block, size_t size) __asm__("_ZdaPvm");

void *operator_new(size_t size) {
    void *block = malloc(size);
    if (!block) lmb_stop("no memory");
    return block;
}
void *operator_new_array(size_t size) { return operator_new(size); }
void operator_delete(void *block) { free(block); }
void operator_delete_array(void *block) { free(block); }
void operator_delete_sized(void *block, size_t size) { (void)size, free(block); }
void operator_delete_array_sized(void *block, size_t size) { (void)size, free(block); }

/* -- memory of one call: chunks that are kept for the next one ------------------------------------ */

enum { CHUNK = 65536 - 64 };

typedef struct Chunk {
    struct Chunk *next;
    size_t room, used;
} Chunk;

static Chunk *chunks, *current;

static void *from_chunk(Chunk *chunk, size_t size, size_t align) {
    uintptr_t start = (uintptr_t)(chunk + 1), at = (start + chunk->used + align - 1) & ~(uintptr_t)(align - 1);
    if (size > chunk->room || at - start > chunk->room - size) return NULL;
    chunk->used = at - start + size;
    return (void *)at;
}

void *lmb_call_alloc(size_t size, size_t align) {
    Chunk *chunk;
    size_t room = size + align > CHUNK ? size + align : CHUNK;
    void *found;
    if (size > LARGEST || align > PAGE) lmb_stop("a call needs more memory than there is");
    while (current) {
        if ((found = from_chunk(current, size, align)) != NULL) return found;
        if (!current->next) break;
        current = current->next;
        current->used = 0;
    }
    chunk = malloc(sizeof *chunk + room);
    if (!chunk) lmb_stop("a call needs more memory than there is");
    *chunk = (Chunk){NULL, room, 0};
    if (current) current->next = chunk;
    else chunks = chunk;
    current = chunk;
    return from_chunk(chunk, size, align);
}

void lmb_call_end(void) {
    current = chunks;
    if (current) current->used = 0;
}

/* The host asks with this for memory of arguments and symbols. */
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    void *block = lmb_call_alloc(size, align);
    return old ? memcpy(block, old, old_size < size ? old_size : size) : block;
}
