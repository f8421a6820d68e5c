/* Opens plugins whose symbols only they see, and runs the region of each. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **paths) {
    for (int nth = 1; nth < count; nth++) {
        void *plugin = dlopen(paths[nth], RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            printf("%s\n", dlerror());
            return 1;
        }
        void (*add_up)(long *, int *) = (void (*)(long *, int *))dlsym(plugin, "add_up");
        long sum = 0;
        int team = 0;
        add_up(&sum, &team);
        printf("%ld %d\n", sum, team);
    }
    return 0;
}
