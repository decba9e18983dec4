/* Regions as the tests expect them; other.c is another translation unit with the header. */
#include <cg_bench.h>
#include <string.h>
#include <sys/wait.h>

void burn(long turns);
void other(void);

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    char name[202];
    int i;
    if (strcmp(what, "none") == 0) return 0;
    cg_bench_region_begin("empty");
    cg_bench_region_end();
    for (i = 0; i < 3; i++) {
        cg_bench_region_begin("burn");
        burn(1000);
        cg_bench_region_end();
        burn(50000);
    }
    cg_bench_region_begin("100% \xc3\xa9\n");
    burn(2000);
    cg_bench_region_end();
    other();
    cg_bench_region_begin("empty");
    cg_bench_region_end();
    if (strcmp(what, "nested") == 0) {
        cg_bench_region_begin("outer");
        cg_bench_region_begin("inner");
    }
    if (strcmp(what, "left") == 0) cg_bench_region_end();
    if (strcmp(what, "unnamed") == 0) cg_bench_region_begin("");
    if (strcmp(what, "long") == 0) {
        memset(name, 'x', 201);
        name[201] = '\0';
        cg_bench_region_begin(name);
    }
    if (strcmp(what, "fork") == 0) {
        if (fork() == 0) {
            cg_bench_region_begin("burn");
            burn(4000);
            cg_bench_region_end();
            return 0;
        }
        wait(NULL);
    }
    return 0;
}
