// Four threads with a mutex, and with nothing in common.
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long sum;

static void *work(void *first)
{
    unsigned long own = (unsigned long)first;
    for (int i = 0; i < 20000; i++) {
        own = own * 6364136223846793005ul + 1;
        if (i % 100 == 0) {
            pthread_mutex_lock(&lock);
            sum += own >> 60;
            pthread_mutex_unlock(&lock);
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (unsigned long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    printf("%lu\n", sum);
    return 0;
}
