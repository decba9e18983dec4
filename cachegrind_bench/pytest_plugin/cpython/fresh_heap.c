/* Takes the memory that is free in the heaps of CPython and glibc. It is not done by ctypes, as that takes some 2,500 simulated
   instructions for each call of a C function. The machine code in fresh_heap.py is made of this by GCC 12:

   gcc -Os -fPIC -fno-stack-protector -fcf-protection=none -fomit-frame-pointer -fno-asynchronous-unwind-tables
       -fno-toplevel-reorder -c fresh_heap.c && objcopy -O binary -j .text fresh_heap.o fresh_heap.bin

*/

typedef unsigned long word;
struct mallinfo2 { word others[9], keepcost; };
struct asked {
    word (*object)(word), (*release)(word), (*map)(word, word, int, int, int, word), (*unmap)(word, word);
    word (*malloc)(word), (*free)(word), (*memset)(word, int, word), (*sbrk)(word);
    struct mallinfo2 (*mallinfo2)(void);
    word all_blocks, steps, most, moved;
};

/* CPython's Objects/obmalloc.c: blocks in pools with a header, in arenas. */
enum { STEP = 16, LARGEST = 512, HEADER = 48, POOL = 1 << 14, ARENA = 1 << 20, POOLS = ARENA / POOL };
enum {
    LEFT = 60,                  /* pools of an arena, to begin at the same place of one */
    STEPS_OF_POOL = 40,         /* so that many layouts begin in the pools that are held */
    SMALL = 128,                /* most objects are small blocks, but few have only 16 bytes */
    HELD_SMALL = 8, HELD = 4,   /* pools */
    ROUNDS = 1000,
    MOST_POOLS = 1 << 16        /* 1 GiB of them may be free */
};
/* glibc's malloc/malloc.c: a chunk has 8 bytes more than was asked for, and is a multiple of 16 and at least 32 bytes
   long. Up to 1,040 bytes it keeps them for their thread, by their size; from 128 KiB on it maps each on its own. */
enum { LEAST = 32, MOST = 1 << 16, KEPT = 1040, REST = 1 << 15 };

static void take_blocks(struct asked *c);
static void take_chunks(struct asked *c);

void take(struct asked *c)
{
    if (c->all_blocks)
        take_blocks(c);
    for (word size = LARGEST; size; size -= STEP)
        for (word count = c->steps * (POOL / size > STEPS_OF_POOL ? POOL / size / STEPS_OF_POOL : 1); count--;)
            c->object(size);
    if (c->most)
        take_chunks(c);
}

static word take_pool(struct asked *c)
{
    word first = c->object(LARGEST);
    for (int more = (POOL - HEADER) / LARGEST; --more;)
        c->object(LARGEST);
    return first - HEADER;
}

static void take_blocks(struct asked *c)
{
    word place, size, round;

    /* Of each size, until a whole pool came from its first block to its last: nothing is free before it. */
    for (size = LARGEST; size; size -= STEP) {
        word each = (POOL - HEADER) / size, most = ROUNDS * each, run = 0, last = 0;
        while (run < each) {
            word block = c->object(size);
            run = block % POOL == HEADER ? 1 : run && block == last + size ? run + 1 : 0;
            last = block;
            if (!block || !--most)
                return; /* another allocator */
        }
    }
    /* The next arenas begin at multiples of their size, where memory is mapped into the first hole, as Valgrind does. Of an
       arena that does not, all blocks up to such a multiple take four instructions more to be freed than those beyond
       (arena_map_is_used): a loop over 30,000 ints moved by 1.5 % with whether imported modules had been compiled before. */
    for (round = 0; round < ROUNDS; round++) {
        place = c->map(0, ARENA, 0, 0x22 /* MAP_PRIVATE | MAP_ANONYMOUS */, -1, 0);
        c->unmap(place, ARENA);
        if (!(place % ARENA))
            break;
        c->map(0, -place % ARENA, 0, 0x22, -1, 0);
    }
    for (round = 0; take_pool(c) != place; round++)
        if (round > MOST_POOLS)
            return;
    /* One block stays in each of some pools: else a call would take pools and give them back, by where it begins in one. The
       others are freed, the last one first, and so are taken again in their order. */
    for (size = LARGEST; size; size -= STEP) {
        word each = (POOL - HEADER) / size, first[HELD_SMALL], pools = 0, block;
        while (pools < (size > STEP && size <= SMALL ? HELD_SMALL : HELD)) {
            first[pools] = c->object(size);
            for (block = 1; block < each; block++)
                if (c->object(size) != first[pools] + block * size)
                    return; /* no memory is left, or they come in another order */
            pools++;
        }
        while (pools--)
            for (block = each; --block;)
                c->release(first[pools] + block * size);
    }
    for (round = 0; take_pool(c) % ARENA != (POOLS - LEFT - 1) * POOL; round++)
        if (round > POOLS)
            return;
}

static void take_chunks(struct asked *c)
{
    word end = c->sbrk(0) - c->mallinfo2().keepcost, most = c->most, spare, rest;
    for (word size = MOST; size >= LEAST; size = size <= KEPT ? size - STEP : size / 2 > KEPT ? size / 2 : KEPT)
        while (c->malloc(size - 8) - 1 < end - 1 && most)
            most--;
    /* Calls have as much room as this before the heap's end, and it is in the caches, as memory that is used again is. */
    for (int round = 64; (spare = c->mallinfo2().keepcost - MOST) - 8192 > MOST - 8192; round--)
        if (!round || !c->malloc(REST - 8))
            return;
    c->malloc(spare + c->moved - 8);
    if ((rest = c->malloc(REST)))
        c->free(c->memset(rest, 0, REST));
}
