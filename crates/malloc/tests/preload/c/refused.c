// Makes the kernel refuse a system call for good, then executes a program:
//
// PRELOAD=LIBRARY refused CALL PROGRAM ARGUMENTS...
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const struct {
    const char *name;
    unsigned number, error;
} calls[] = {
    {"madvise", SYS_madvise, EINVAL},
    {"prctl", SYS_prctl, EINVAL},
    {"munmap", SYS_munmap, ENOMEM},
    {"mremap", SYS_mremap, ENOMEM},
    {"membarrier", SYS_membarrier, EPERM},
};

int main(int count, char **arguments) {
    CHECK(count > 2);
    size_t nth = 0;
    while (nth < sizeof calls / sizeof *calls && strcmp(calls[nth].name, arguments[1]) != 0) nth++;
    CHECK(nth < sizeof calls / sizeof *calls);
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[nth].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | calls[nth].error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK(setenv("LD_PRELOAD", getenv("PRELOAD"), 1) == 0);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    execv(arguments[2], arguments + 2);
    perror(arguments[2]);
    return 1;
}
