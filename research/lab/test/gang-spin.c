/*
 * Spins in several processes, and prints how much of a CPU each had.
 *
 *     gang-spin NAME PROCESSES SECONDS START     "NAME MS MS ...", milliseconds of processor time
 *
 * START is a folder. Once all processes are there, a file NAME is made in it, and they wait until
 * somebody makes a file `go` there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    if (argc != 5 || chdir(argv[4]))
        return 2;
    int processes = atoi(argv[2]);

    for (int i = 0; i < processes; i++) {
        pid_t child = fork();

        if (child < 0)
            return 1;
        if (child == 0) {
            while (access("go", F_OK))
                usleep(10000);

            double end = now() + atof(argv[3]);

            while (now() < end)
                for (volatile int k = 0; k < 10000; k++)
                    ;
            _exit(0);
        }
    }
    int ready = open(argv[1], O_CREAT | O_WRONLY, 0600);

    if (ready < 0)
        return 1;
    close(ready);
    printf("%s", argv[1]);
    for (int i = 0; i < processes; i++) {
        struct rusage used;
        int status;

        if (wait4(-1, &status, 0, &used) < 0)
            return 1;
        printf(" %ld", used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000 +
                           used.ru_stime.tv_sec * 1000 + used.ru_stime.tv_usec / 1000);
    }
    printf("\n");
    return 0;
}
