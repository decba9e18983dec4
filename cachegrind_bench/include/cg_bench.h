/* cg_bench.h: marks the regions of a C or C++ program that `cg-bench run --regions` measures.
 *
 *     cg_bench_region_begin("parse");            C++:  {
 *     parse(text);                                         cg_bench::region region{"parse"};
 *     cg_bench_region_end();                               parse(text);
 *                                                      }
 *
 * A region that is entered again adds up. Regions do not nest, and belong to one thread at a time: what other threads do
 * meanwhile is not counted. A mistake ends the program with a message. Without CG_BENCH_MARKS=1 in the environment, which
 * `cg-bench run --regions` sets, a mark does nothing. Valgrind's headers (Debian: valgrind) are needed to compile: without
 * them, and with -DCG_BENCH_DISABLE or -DNVALGRIND, marks are empty; with -DCG_BENCH_REQUIRE their lack is an error.
 *
 * Only this header, nothing to link. All translation units share one state, and so do the libraries that a program is
 * linked with; what is loaded with dlopen() has its own. A forked child can enter regions of its own.
 */
#ifndef CG_BENCH_H
#define CG_BENCH_H

#define CG_BENCH_ENABLED 0
#if !defined(CG_BENCH_DISABLE) && !defined(NVALGRIND) && defined(__has_include)
#if __has_include(<valgrind/callgrind.h>)
#undef CG_BENCH_ENABLED
#define CG_BENCH_ENABLED 1
#endif
#endif

#if defined(CG_BENCH_REQUIRE) && !CG_BENCH_ENABLED
#error "cg_bench.h: no <valgrind/callgrind.h> (Debian: apt-get install valgrind), or marks are turned off"
#endif

#if CG_BENCH_ENABLED

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

/* One copy in the program, whichever translation units have it, and never inlined: so each region has the same cost of its
 * marks, which is measured before the first one and subtracted. A call is one instruction, through the GOT where it leaves
 * a library: a PLT would have the dynamic linker's search counted in a region. */
#if defined(__has_attribute)
#if __has_attribute(noplt)
#define CG_BENCH_ONCE_PLT_ , noplt
#endif
#if __has_attribute(noclone)
#define CG_BENCH_ONCE_CLONE_ , noclone
#endif
#endif
#ifndef CG_BENCH_ONCE_PLT_
#define CG_BENCH_ONCE_PLT_
#endif
#ifndef CG_BENCH_ONCE_CLONE_
#define CG_BENCH_ONCE_CLONE_
#endif
#define CG_BENCH_ONCE_ \
    __attribute__((weak, visibility("default"), used, noinline CG_BENCH_ONCE_PLT_ CG_BENCH_ONCE_CLONE_))

#define CG_BENCH_NAME_MAX_ 200
#define CG_BENCH_PREFIX_ "cg-bench:region:"

#ifdef __cplusplus
extern "C" {
#endif

struct cg_bench_state_ {
    int asked;       /* whether the environment was looked at, */
    int enabled;     /* and what it said */
    int calibrating; /* the cost of the marks is being measured, */
    int inside;      /* of a region */
    long process;    /* where that was done last, */
    char mark[sizeof CG_BENCH_PREFIX_ + 3 * CG_BENCH_NAME_MAX_]; /* and the last mark made there */
};

extern struct cg_bench_state_ cg_bench_state_;
struct cg_bench_state_ cg_bench_state_ __attribute__((weak, visibility("default"))) = {0, 0, 0, 0, 0, {0}};

/** Enter a region. The name has 1 to 200 bytes, and is not kept. */
CG_BENCH_ONCE_ void cg_bench_region_begin(const char *name);

/** Leave the region. */
CG_BENCH_ONCE_ void cg_bench_region_end(void);

/* From how often this function ran, cg-bench knows how often a region was entered: it looks for its name. */
CG_BENCH_ONCE_ void cg_bench_toggle_region(void);

CG_BENCH_ONCE_ __attribute__((noreturn)) void cg_bench_fail_(const char *what, const char *name);
CG_BENCH_ONCE_ void cg_bench_mark_(const char *name);
CG_BENCH_ONCE_ void cg_bench_set_up_(void);
CG_BENCH_ONCE_ void cg_bench_calibrate_(void);

void cg_bench_toggle_region(void) { CALLGRIND_TOGGLE_COLLECT; }

void cg_bench_fail_(const char *what, const char *name) {
    fflush(stdout);
    fprintf(stderr, "cg_bench.h: %s: \"%.200s\"\n", what, name);
    abort();
}

/* Say whose the counts are that follow, unless the last mark did. */
void cg_bench_mark_(const char *name) {
    static const char hex[] = "0123456789ABCDEF";
    char mark[sizeof cg_bench_state_.mark];
    char *end = mark + sizeof CG_BENCH_PREFIX_ - 1;
    const char *from;
    strcpy(mark, CG_BENCH_PREFIX_);
    if (!name || *name == '\0') cg_bench_fail_("a region needs a name", "");
    for (from = name; *from != '\0'; from++) {
        const int byte = *from & 0xFF;
        if (from - name == CG_BENCH_NAME_MAX_) cg_bench_fail_("the name of a region is longer than 200 bytes", name);
        if (byte < 0x21 || byte > 0x7E || byte == '%') {
            *end++ = '%';
            *end++ = hex[byte >> 4];
            *end++ = hex[byte & 15];
        } else {
            *end++ = *from;
        }
    }
    *end = '\0';
    if (strcmp(mark, cg_bench_state_.mark) == 0) return;
    strcpy(cg_bench_state_.mark, mark);
    CALLGRIND_DUMP_STATS_AT(cg_bench_state_.mark);
}

void cg_bench_set_up_(void) {
    const char *const wanted = getenv("CG_BENCH_MARKS");
    cg_bench_state_.enabled = wanted && strcmp(wanted, "1") == 0;
    cg_bench_state_.asked = 1;
}

/* Have an empty region counted, through the functions that are used for every other one, and when the caches know them. */
void cg_bench_calibrate_(void) {
    int i;
    cg_bench_state_.process = getpid();
    cg_bench_state_.mark[0] = '\0';
    cg_bench_state_.calibrating = 1;
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT("cg-bench:warm");
    for (i = 0; i < 17; i++) {
        if (i == 16) CALLGRIND_DUMP_STATS_AT("cg-bench:empty:1");
        cg_bench_region_begin("");
        cg_bench_region_end();
    }
    cg_bench_state_.calibrating = 0;
}

void cg_bench_region_begin(const char *name) {
    if (!cg_bench_state_.asked) cg_bench_set_up_();
    if (!cg_bench_state_.enabled) return;
    if (cg_bench_state_.inside) cg_bench_fail_("regions do not nest, and the last one was not left before this", name);
    if (!cg_bench_state_.calibrating) {
        if (cg_bench_state_.process != getpid()) cg_bench_calibrate_(); /* a forked child writes a file of its own */
        cg_bench_mark_(name);
    }
    cg_bench_state_.inside = 1;
    cg_bench_toggle_region();
}

void cg_bench_region_end(void) {
    if (!cg_bench_state_.enabled) return;
    if (!cg_bench_state_.inside) cg_bench_fail_("a region was left that was not entered; last mark", cg_bench_state_.mark);
    cg_bench_state_.inside = 0;
    cg_bench_toggle_region();
}

#ifdef __cplusplus
}
#endif

#else /* no marks */

static inline void cg_bench_region_begin(const char *name) { (void)name; }
static inline void cg_bench_region_end(void) {}

#endif

#ifdef __cplusplus
namespace cg_bench {

#if __cplusplus >= 201103L
/** A region from here to the end of the block: `cg_bench::region region{"parse"};`. */
#if __cplusplus >= 201703L
class [[nodiscard]] region {
#else
class region {
#endif
  public:
    explicit region(const char *name) { cg_bench_region_begin(name); }
    ~region() { cg_bench_region_end(); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;
};
#endif

} // namespace cg_bench
#endif

#endif
