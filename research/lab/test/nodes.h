/* Queries of /sys for the lab's programs. */
#include <stdio.h>

/* The first number of a file such as a node's cpulist; -1 if it is empty or not there. */
static int first_number(const char *format, int node)
{
    char path[128];
    int number = -1;
    snprintf(path, sizeof path, format, node);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%d", &number) != 1)
            number = -1;
        fclose(file);
    }
    return number;
}
