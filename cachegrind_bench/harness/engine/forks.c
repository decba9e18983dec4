/* Preloaded into a program: has it execute its `main` once, and then once more for each of many command lines, in a child of its own.

What the first execution left in the program's variables is taken back, so that each child finds them as at the start. All children
are forked at one point: none can see how many others there are. See forks.py for the files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_AREAS 16
#define ONE_THREAD 3 /* links of /proc/self/task */

typedef int main_function(int, char **, char **);
typedef int start_function(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

static main_function *program_main;
static int lines, reports;
static char line[1 << 16];
static struct { char *start, *copy; size_t size; } areas[MOST_AREAS];
static int area_count;

static void keep(char *start, size_t size) {
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED || area_count == MOST_AREAS) _exit(1);
    memcpy(copy, start, size);
    areas[area_count].start = start;
    areas[area_count].copy = copy;
    areas[area_count++].size = size;
}

/* Keep the variables of the program itself, which comes first: those that are not read-only by now, and the main thread's own. */
static int keep_variables(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size, (void)data;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), fixed = 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_GNU_RELRO) fixed = (header->p_vaddr + header->p_memsz) & -page;
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = header->p_vaddr, end = start + header->p_memsz;
        if (header->p_type == PT_TLS && info->dlpi_tls_data) keep(info->dlpi_tls_data, header->p_memsz);
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_W)) continue;
        if (start < fixed) start = fixed;
        if (start < end) keep((char *)info->dlpi_addr + start, end - start);
    }
    return 1;
}

static void end_alike(int status) {
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        kill(getpid(), WTERMSIG(status));
    }
    _exit(WEXITSTATUS(status));
}

static int each(int argc, char **argv, char **variables) {
    struct stat tasks;
    int count = 0;
    uint16_t size;
    int32_t ended[2] = {0, 0};
    dl_iterate_phdr(keep_variables, NULL);
    program_main(argc, argv, variables);
    for (int i = 0; i < area_count; i++) memcpy(areas[i].start, areas[i].copy, areas[i].size);
    if (stat("/proc/self/task", &tasks) || tasks.st_nlink != ONE_THREAD) return 0; /* a child would miss the others */
    for (; read(lines, &size, sizeof size) == sizeof size; count++) {
        if (read(lines, line, size) != size) return 1;
        ended[0] = fork();
        if (ended[0] == 0 && size == 0) _exit(0);
        if (ended[0] == 0) {
            char *word = line;
            close(lines);
            close(reports);
            for (int i = 1; i < argc; i++, word += strlen(word) + 1) argv[i] = word;
            return program_main(argc, argv, variables);
        }
        while (waitpid(ended[0], &ended[1], 0) < 0 && errno == EINTR) {}
        if (write(reports, ended, sizeof ended) != sizeof ended) return 1;
    }
    if (count == 2) end_alike(ended[1]); /* the only one, after the empty line */
    return 0;
}

static int is_found(const char *name) {
    const char *folders = getenv("PATH");
    char path[PATH_MAX];
    if (strchr(name, '/') || !folders) return 1;
    for (;; folders++) {
        int length = (int)strcspn(folders, ":");
        if (snprintf(path, sizeof path, "%.*s%s%s", length, folders, length ? "/" : "", name) < PATH_MAX && !access(path, X_OK))
            return 1;
        folders += length;
        if (!*folders) return 0;
    }
}

/* Under Valgrind, a program that is not found takes a process, and is no error. Some frameworks look for gnuplot in any case. */
int posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const variables[]) {
    spawn_function *next = (spawn_function *)dlsym(RTLD_NEXT, "posix_spawnp");
    return is_found(name) ? next(child, name, actions, attributes, argv, variables) : ENOENT;
}

int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*end)(void), void *stack) {
    start_function *next = (start_function *)dlsym(RTLD_NEXT, "__libc_start_main");
    const char *folder = getenv("CG_BENCH_FORKS"), *preloaded = getenv("LD_PRELOAD");
    char path[PATH_MAX];
    if (folder && preloaded && strstr(preloaded, "vgpreload_")) { /* and not in Valgrind's launcher */
        snprintf(path, sizeof path, "%s/lines", folder);
        lines = open(path, O_RDONLY | O_CLOEXEC);
        snprintf(path, sizeof path, "%s/forked", folder);
        reports = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        unsetenv("CG_BENCH_FORKS");
        unsetenv("LD_PRELOAD");
        program_main = main;
        main = each;
    }
    return next(main, argc, argv, init, fini, end, stack);
}
