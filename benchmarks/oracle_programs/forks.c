// Forks, executes and waits in every common way: fork, vfork, posix_spawn, a grandchild, a pipe between two children.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static unsigned work(unsigned rounds)
{
    unsigned sum = 1;
    for (unsigned i = 0; i < rounds; i++) sum = sum * 1103515245u + 12345u;
    return sum;
}

int main(void)
{
    unsigned sum = work(10000);
    for (int child = 0; child < 4; child++)
        if (fork() == 0) {
            if (child == 3 && fork() == 0) _exit(work(5000) & 1);
            sum += work(20000 * (child + 1));
            while (wait(NULL) > 0) {}
            _exit(sum & 1);
        }
    if (vfork() == 0) execl("/bin/true", "true", (char *)NULL);
    pid_t pid;
    char *words[] = {"echo", "spawned", NULL};
    posix_spawn(&pid, "/bin/echo", NULL, NULL, words, environ);
    int ends[2];
    if (pipe(ends) != 0) return 1;
    if (fork() == 0) {
        FILE *out = fdopen(ends[1], "w");
        for (int i = 0; i < 2000; i++) fprintf(out, "%d\n", i);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    char buffer[4096];
    long total = 0, got;
    while ((got = read(ends[0], buffer, sizeof buffer)) > 0) total += got;
    while (wait(NULL) > 0) {}
    printf("%ld %u\n", total, sum);
    return 0;
}
