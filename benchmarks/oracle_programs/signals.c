// Signals that a program sends itself, handlers that jump out, and a child that is killed.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile unsigned caught;
static sigjmp_buf back;

static void count(int number) { caught += (unsigned)number; }
static void jump(int number) { siglongjmp(back, number); }

int main(void)
{
    signal(SIGUSR1, count);
    signal(SIGSEGV, jump);
    for (int i = 0; i < 500; i++) raise(SIGUSR1);
    for (volatile int i = 0; i < 50; i++)
        if (sigsetjmp(back, 1) == 0) raise(SIGSEGV);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    kill(child, SIGTERM);
    int status;
    waitpid(child, &status, 0);
    printf("%u %d\n", caught, WTERMSIG(status));
    return 0;
}
