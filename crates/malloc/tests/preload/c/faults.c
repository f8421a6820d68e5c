// Refuses the n-th occurrence of each call that the library makes, for all n, and checks that the
// library survives.
//
// faults LIBRARY plain|nodes|limited ERRORS MOST [CALL NTH ERROR once|on]
//
// faults LIBRARY numbers
//
// The program opens the library with dlopen instead of preloading it, so that even its first calls
// can be refused while the program's own malloc works. Each refusal runs in a process of its own,
// which performs the same short sequence of allocations, a *life*:
//
// - System calls: a seccomp filter passes every call that does not come from the C library's code
//   to a thread without that filter, the *judge*, which counts it and allows or refuses it. This
//   needs no list of calls, tests the shipped library, and reaches threads that block all signals.
// - Calls of the C library: the program defines functions of the same names, which take precedence
//   over the C library's.
//
// The checks: no block is handed out twice, and none changes. `errno` is preserved, or ENOMEM after
// a refused allocation. The library refuses an allocation only if one of its own calls was refused.
// After one refused call, the next attempt succeeds. When no call is refused any more, all sizes
// can be allocated again and nothing is leaked: the process occupies no more chunks and addresses
// than without a refusal.
//
// With `nodes`, the judge shows the library a machine with two nodes, and every thread has a
// pending cancellation: a cancellation point would end it in the middle of a heap operation.
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

// ---- the plan: the call to refuse ------------------------------------------------------------

enum { SYSCALLS = 512, FUNCTIONS = 5, CALLS = SYSCALLS + FUNCTIONS };
enum { KEY_CREATE = SYSCALLS, SETSPECIFIC, ATFORK, CREATE, GETCPU };

static const char *name_of(int call) {
    static const char *const functions[] = {"pthread_key_create", "pthread_setspecific", "pthread_atfork",
                                            "pthread_create", "sched_getcpu"};
    static const struct {
        int number;
        const char *name;
    } known[] = {
        {SYS_mmap, "mmap"},           {SYS_munmap, "munmap"},         {SYS_mprotect, "mprotect"},
        {SYS_madvise, "madvise"},     {SYS_mremap, "mremap"},         {SYS_mlock, "mlock"},
        {SYS_mbind, "mbind"},         {SYS_membarrier, "membarrier"}, {SYS_get_mempolicy, "get_mempolicy"},
        {SYS_prctl, "prctl"},         {SYS_openat, "openat"},         {SYS_move_pages, "move_pages"},
        {SYS_read, "read"},           {SYS_close, "close"},           {SYS_prlimit64, "prlimit64"},
        {SYS_futex, "futex"},         {SYS_nanosleep, "nanosleep"},   {SYS_sched_yield, "sched_yield"},
        {SYS_write, "write"},         {SYS_clone, "clone"},
    };
    static char text[32];
    if (call >= SYSCALLS) return functions[call - SYSCALLS];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].number == call) return known[i].name;
    snprintf(text, sizeof text, "system call %d", call);
    return text;
}

static const int all_errors[] = {ENOMEM, EPERM, EINVAL, EAGAIN, ENOSYS};

// The plan and the results of one life, in memory shared with the process that started it.
struct run {
    // Refuses the nth occurrence of a call, and later ones if `goes_on`; none if nth is 0.
    int call, nth, error;
    bool goes_on;
    // The results.
    atomic_int counts[CALLS];
    atomic_int refused;
    long chunks, addresses;
    atomic_bool is_over;
};
static struct run *run;
static atomic_bool is_planned;
static bool with_nodes;

// Counts a call. Returns the error to refuse it with, or 0 to allow it.
static int judged(int call) {
    if (!atomic_load(&is_planned)) return 0;
    int nth = atomic_fetch_add(&run->counts[call], 1) + 1;
    bool hit = run->call == call && run->nth != 0 && (run->goes_on ? nth >= run->nth : nth == run->nth);
    if (!hit) return 0;
    atomic_fetch_add(&run->refused, 1);
    return run->error;
}

// ---- the C library's functions ---------------------------------------------------------------

// Marks the program's own calls, as opposed to the library's.
static _Thread_local bool is_own;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
static __typeof__(&pthread_create) real_create;
static __typeof__(&pthread_key_create) real_key_create;
static __typeof__(&pthread_setspecific) real_setspecific;
static __typeof__(&__register_atfork) real_atfork;
static __typeof__(&sched_getcpu) real_getcpu;

static void find_real(void) {
    real_create = REAL(pthread_create);
    real_key_create = REAL(pthread_key_create);
    real_setspecific = REAL(pthread_setspecific);
    real_atfork = REAL(__register_atfork);
    real_getcpu = REAL(sched_getcpu);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*begin)(void *), void *with) {
    int error = is_own ? 0 : judged(CREATE);
    return error ? error : real_create(thread, attributes, begin, with);
}

// Starts a thread of the program. Tries again if the machine has too many threads at the moment.
static void begin(pthread_t *thread, const pthread_attr_t *attributes, void *(*run_it)(void *), void *with) {
    is_own = true;
    while (pthread_create(thread, attributes, run_it, with)) sched_yield();
    is_own = false;
}

int pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
    int error = judged(KEY_CREATE);
    return error ? error : real_key_create(key, destructor);
}

int pthread_setspecific(pthread_key_t key, const void *value) {
    int error = judged(SETSPECIFIC);
    return error ? error : real_setspecific(key, value);
}

int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *object) {
    int error = judged(ATFORK);
    return error ? error : real_atfork(before, parent, child, object);
}

int sched_getcpu(void) {
    int error = judged(GETCPU);
    if (!error) return real_getcpu();
    errno = error;
    return -1;
}

// System calls that the heap makes through the C library.
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long all[6];
    for (int i = 0; i < 6; i++) all[i] = va_arg(list, long);
    va_end(list);
    static __typeof__(&syscall) real;
    if (!real) real = REAL(syscall);
    int error = number == SYS_membarrier ? judged((int)number) : 0;
    if (!error) return real(number, all[0], all[1], all[2], all[3], all[4], all[5]);
    errno = error;
    return -1;
}

// ---- the kernel's calls ----------------------------------------------------------------------

// The C library's code: calls from there are not the heap's.
static struct range {
    uint64_t start, end;
} others[16];
static int others_count;

static int note_range(struct dl_phdr_info *info, size_t size, void *unused) {
    (void)size, (void)unused;
    bool is_library = strstr(info->dlpi_name, "libc.so") || strstr(info->dlpi_name, "libc-") ||
                      strstr(info->dlpi_name, "ld-linux") || strstr(info->dlpi_name, "libpthread");
    for (int i = 0; is_library && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X)) continue;
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        CHECK(others_count < 16);
        others[others_count++] = (struct range){start, start + header->p_memsz};
    }
    return 0;
}

// The filter's notification descriptor, once it exists.
static atomic_int listener = -1;

static void filter(void) {
    struct sock_filter code[8 * 16 + 1];
    int count = 0;
    const unsigned ip = offsetof(struct seccomp_data, instruction_pointer);
    for (int i = 0; i < others_count; i++) {
        // A range that crosses a multiple of 4 GiB goes to the judge as well, which is only slower.
        struct range range = others[i];
        if (range.start >> 32 != range.end >> 32) continue;
        struct sock_filter part[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(range.start >> 32), 0, 4),
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip),
            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)range.start, 0, 2),
            BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (unsigned)range.end, 1, 0),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        memcpy(code + count, part, sizeof part);
        count += sizeof part / sizeof *part;
    }
    code[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
    struct sock_fprog program = {(unsigned short)count, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    long fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    CHECK(fd >= 0);
    atomic_store(&listener, (int)fd);
}

// ---- a machine of two nodes ------------------------------------------------------------------

static int file_with(const char *text) {
    int file = memfd_create("node", MFD_CLOEXEC);
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    lseek(file, 0, SEEK_SET);
    return file;
}

// Answers a call as a machine with two nodes would; -1 if the call does not ask about nodes.
static int64_t pretended(const struct seccomp_data *data) {
    if (data->nr == SYS_mbind) return 0;
    if (data->nr == SYS_get_mempolicy) {
        if (data->args[0]) *(int *)(uintptr_t)data->args[0] = 0;
        if (data->args[1]) *(uint64_t *)(uintptr_t)data->args[1] = 3;
        return 0;
    }
    if (data->nr != SYS_openat) return -1;
    const char *path = (const char *)(uintptr_t)data->args[1], *nodes = "/sys/devices/system/node/";
    if (strncmp(path, nodes, strlen(nodes)) != 0) return -1;
    path += strlen(nodes);
    if (strcmp(path, "has_memory") == 0 || strcmp(path, "online") == 0) return file_with("0-1\n");
    bool is_first = strncmp(path, "node0", 5) == 0;
    if (strstr(path, "distance")) return file_with(is_first ? "10 20\n" : "20 10\n");
    if (strstr(path, "cpulist")) return file_with(is_first ? "0,2,4,6,8,10,12,14\n" : "1,3,5,7,9,11,13,15\n");
    if (strstr(path, "meminfo"))
        return file_with("Node 0 MemTotal: 64000000 kB\nNode 0 MemFree: 60000000 kB\n");
    return -1;
}

// The judge: the thread without a filter.
static void *judge(void *unused) {
    (void)unused;
    while (atomic_load(&listener) < 0) sched_yield();
    for (;;) {
        struct seccomp_notif asked = {0};
        if (ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_RECV, &asked)) continue;
        struct seccomp_notif_resp answer = {.id = asked.id};
        int call = asked.data.nr;
        bool is_end = call == SYS_exit || call == SYS_exit_group || call == SYS_rt_sigreturn;
        int error = is_end || call >= SYSCALLS ? 0 : judged(call);
        int64_t result = error || !with_nodes ? -1 : pretended(&asked.data);
        if (error)
            answer.error = -error;
        else if (result >= 0)
            answer.val = result;
        else
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        // A thread that has ended meanwhile needs no answer.
        ioctl(atomic_load(&listener), SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return NULL;
}

// ---- the library -----------------------------------------------------------------------------

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void (*free)(void *);
    size_t (*usable)(void *);
    int (*trim)(size_t);
    struct mallinfo2 (*info)(void);
} heap;

static void open_library(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    *(void **)&heap.malloc = dlsym(library, "malloc");
    *(void **)&heap.calloc = dlsym(library, "calloc");
    *(void **)&heap.realloc = dlsym(library, "realloc");
    *(void **)&heap.aligned_alloc = dlsym(library, "aligned_alloc");
    *(void **)&heap.free = dlsym(library, "free");
    *(void **)&heap.usable = dlsym(library, "malloc_usable_size");
    *(void **)&heap.trim = dlsym(library, "malloc_trim");
    *(void **)&heap.info = dlsym(library, "mallinfo2");
    CHECK(heap.malloc && heap.info);
}

// ---- blocks ----------------------------------------------------------------------------------

enum { BLOCKS = 512, ERROR_NUMBER = 77 };
struct block {
    unsigned char *start;
    size_t size, usable;
    unsigned char seed;
};
static struct block blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned char next_seed;

// Distance to the next byte to write: every byte of a small block; of a large one, both ends and a
// byte now and then, so that most of it needs no memory.
static size_t step_of(size_t size, size_t at) {
    bool is_near = at < 4096 || size - at <= 4096;
    if (is_near) return 1;
    size_t rest = size - at - 4096, far = size > 8 << 20 ? 8 << 20 : 65536;
    return rest < far ? rest : far;
}

static void fill(const struct block *block) {
    for (size_t at = 0; at < block->size; at += step_of(block->size, at))
        block->start[at] = (unsigned char)(block->seed + at);
}

static void look_at(const struct block *block, size_t size) {
    for (size_t at = 0; at < size; at += step_of(block->size, at))
        CHECK(block->start[at] == (unsigned char)(block->seed + at));
}

// Records a block that was handed out. It must not overlap any other.
static int note(void *start, size_t size) {
    struct block new = {start, size, heap.usable(start), 0};
    CHECK(new.usable >= size);
    pthread_mutex_lock(&lock);
    int place = -1;
    for (int i = 0; i < BLOCKS; i++) {
        struct block *other = &blocks[i];
        if (!other->start) place = i;
        else
            CHECK(new.start + new.usable <= other->start || other->start + other->usable <= new.start);
    }
    CHECK(place >= 0);
    new.seed = ++next_seed;
    blocks[place] = new;
    pthread_mutex_unlock(&lock);
    fill(&new);
    return place;
}

enum how { PLAIN, ZEROED, ALIGNED };

static void *ask(enum how how, size_t size, size_t align) {
    if (how == ZEROED) return heap.calloc(1, size);
    return how == ALIGNED ? heap.aligned_alloc(align, size) : heap.malloc(size);
}

// Checks that an allocation fails only after a refused call that supplies memory.
static void check_refusal(void *given, int refused_before) {
    if (given) {
        CHECK(errno == ERROR_NUMBER);
        return;
    }
    CHECK(errno == ENOMEM);
    CHECK(run->goes_on ? atomic_load(&run->refused) > 0 : atomic_load(&run->refused) > refused_before);
    CHECK(run->call == SYS_mmap || run->call == SYS_mprotect || run->call == SYS_munmap);
}

// Allocates a block. Returns -1 if every attempt fails.
static int get(enum how how, size_t size, size_t align) {
    for (int attempt = 0; attempt < 2; attempt++) {
        int before = atomic_load(&run->refused);
        errno = ERROR_NUMBER;
        unsigned char *start = ask(how, size, align);
        check_refusal(start, before);
        if (!start) continue;
        CHECK(is_aligned(start, align));
        for (size_t at = 0; how == ZEROED && at < size; at += step_of(size, at)) CHECK(start[at] == 0);
        return note(start, size);
    }
    // After a single refused call, the next attempt must succeed.
    CHECK(run->goes_on && atomic_load(&is_planned));
    return -1;
}

static void put(int place) {
    if (place < 0) return;
    pthread_mutex_lock(&lock);
    struct block block = blocks[place];
    blocks[place].start = NULL;
    pthread_mutex_unlock(&lock);
    look_at(&block, block.size);
    errno = ERROR_NUMBER;
    CHECK(heap.usable(block.start) == block.usable);
    heap.free(block.start);
    CHECK(errno == ERROR_NUMBER);
}

static int resize(int place, size_t size) {
    if (place < 0) return -1;
    pthread_mutex_lock(&lock);
    struct block block = blocks[place];
    pthread_mutex_unlock(&lock);
    look_at(&block, block.size);
    int before = atomic_load(&run->refused);
    errno = ERROR_NUMBER;
    unsigned char *start = heap.realloc(block.start, size);
    check_refusal(start, before);
    if (!start) {
        look_at(&block, block.size);
        return place;
    }
    // Another thread may have been given the old addresses meanwhile. They stayed on record until
    // now.
    pthread_mutex_lock(&lock);
    blocks[place].start = NULL;
    pthread_mutex_unlock(&lock);
    block.start = start;
    for (size_t at = 0; at < size && at < block.size && (at < 4096 || size >= block.size);
         at += step_of(block.size, at))
        CHECK(start[at] == (unsigned char)(block.seed + at));
    return note(start, size);
}

// ---- a life ----------------------------------------------------------------------------------

static const size_t sizes[] = {1,     16,     100,    256,     700,     1024,    3000,      5000,
                               20000, 70000,  200000, 262144,  300000,  1000000, 5 << 20,   9 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

static int crossing[64];
static pthread_barrier_t both;

static void *worker(void *which) {
    int own = (int)(uintptr_t)which;
    if (with_nodes) pthread_cancel(pthread_self());
    for (int i = 0; i < 32; i++) crossing[own * 32 + i] = get(PLAIN, sizes[i % 12] / (i < 12 ? 1 : 3) + 1, 16);
    // Each thread frees the other's blocks; pthread_barrier_wait is not a cancellation point.
    pthread_barrier_wait(&both);
    for (int i = 0; i < 32; i++) put(crossing[(1 - own) * 32 + i]);
    return NULL;
}

static void two_threads(void) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++) begin(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

// Gives the helper, if it exists and has work, time to run: its calls come from another thread.
static void let_the_helper_work(void) {
    int before = atomic_load(&run->counts[SYS_nanosleep]);
    for (int i = 0; i < 20 && atomic_load(&run->counts[SYS_nanosleep]) < before + 2; i++) {
        struct timespec a_moment = {0, 250000};
        nanosleep(&a_moment, NULL);
    }
}

static void live(void) {
    int held[3 * SIZES];
    for (int i = 0; i < SIZES; i++) {
        held[3 * i] = get(PLAIN, sizes[i], 16);
        held[3 * i + 1] = get(ZEROED, sizes[i], 16);
        held[3 * i + 2] = i % 3 ? -1 : get(ALIGNED, sizes[i], 4096 << i);
    }
    two_threads();
    // Blocks with mappings of their own; one grows, and probably another mapping follows it.
    int first = get(PLAIN, (size_t)300 << 20, 16), second = get(ALIGNED, 65536, 8 << 20);
    first = resize(first, (size_t)400 << 20);
    second = resize(second, 100000);
    first = resize(first, 280 << 20);
    for (int i = 0; i < SIZES; i++) {
        held[3 * i] = resize(held[3 * i], sizes[(i + 3) % SIZES]);
        put(held[3 * i + 1]);
    }
    put(first);
    put(second);
    let_the_helper_work();
    two_threads();
    for (int i = 0; i < SIZES; i++) {
        put(held[3 * i]);
        put(held[3 * i + 2]);
    }
    errno = ERROR_NUMBER;
    heap.trim(0);
    CHECK(errno == ERROR_NUMBER);
}

// With no more refusals, every allocation must succeed.
static void live_on(void) {
    int held[SIZES];
    for (int i = 0; i < SIZES; i++) held[i] = get(i % 2 ? PLAIN : ZEROED, sizes[i], 16);
    two_threads();
    int mapped = resize(get(PLAIN, (size_t)300 << 20, 16), (size_t)400 << 20);
    for (int i = 0; i < SIZES; i++) put(held[i]);
    put(mapped);
    heap.trim(0);
}

static long addresses_of_process(void) {
    char text[128] = {0};
    int file = open("/proc/self/statm", O_RDONLY);
    CHECK(file >= 0 && read(file, text, sizeof text - 1) > 0);
    close(file);
    return atol(text) * sysconf(_SC_PAGESIZE);
}

static void whole_life(const char *library) {
    // Ends a process that hangs.
    alarm(100);
    find_real();
    dl_iterate_phdr(note_range, NULL);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t thread;
    begin(&thread, NULL, judge, NULL);
    filter();
    atomic_store(&is_planned, true);
    errno = 0;
    open_library(library);
    live();
    atomic_store(&is_planned, false);
    live_on();
    struct mallinfo2 info = heap.info();
    CHECK(info.hblks == 0 && info.hblkhd == 0);
    run->chunks = (long)info.uordblks;
    run->addresses = addresses_of_process();
    atomic_store(&run->is_over, true);
    _exit(0);
}

// ---- numbers ---------------------------------------------------------------------------------

// Entries for heaps are opened 1024 at a time. Two threads need the first entry of the next batch;
// one is refused after the other has taken a number. A third thread must not get that number.
enum { HEAPS_MIN = 1000, HEAPS_MAX = 1100, HELD = 2, REFUSED, ALL, OVER };
static atomic_int begun, phase;

static void *sleeper(void *unused) {
    (void)unused;
    // The last one is refused.
    void *volatile block = heap.malloc(10);
    (void)block;
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&phase) < OVER) usleep(50000);
    return NULL;
}

static void *late(void *which) {
    int own = (int)(uintptr_t)which;
    while (atomic_load(&phase) < own) sched_yield();
    void *first = heap.malloc(100);
    CHECK(first);
    atomic_fetch_add(&begun, 1);
    while (atomic_load(&phase) < ALL) sched_yield();
    // Two heaps with one number would each take the other's blocks for their own.
    enum { LIVE = 2000 };
    long *held[LIVE] = {0};
    uint64_t state = (uint64_t)own * 77 + 1;
    for (int i = 0; i < 300000; i++) {
        uint64_t word = next_random(&state);
        int at = (int)(word % LIVE);
        if (held[at]) CHECK(*held[at] == ((long)own << 32 | at));
        heap.free(held[at]);
        held[at] = NULL;
        if (word >> 40 & 1) continue;
        held[at] = heap.malloc((word >> 20 & 0xff) | 16);
        CHECK(held[at]);
        *held[at] = (long)own << 32 | at;
    }
    return NULL;
}

// Holds the first call that opens entries until another thread has taken a number.
static void *judge_of_numbers(void *unused) {
    (void)unused;
    while (atomic_load(&listener) < 0) sched_yield();
    struct seccomp_notif held = {0};
    bool is_over = false;
    for (;;) {
        struct pollfd poll_for = {.fd = atomic_load(&listener), .events = POLLIN};
        int ready = poll(&poll_for, 1, held.id && !is_over ? 1 : -1);
        if (held.id && !is_over && atomic_load(&phase) >= REFUSED) {
            struct seccomp_notif_resp answer = {.id = held.id, .error = -ENOMEM};
            ioctl(poll_for.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
            is_over = true;
        }
        if (ready <= 0) continue;
        struct seccomp_notif asked = {0};
        if (ioctl(poll_for.fd, SECCOMP_IOCTL_NOTIF_RECV, &asked)) continue;
        bool opens_entries = asked.data.nr == SYS_mprotect && asked.data.args[1] == 65536;
        if (opens_entries && atomic_load(&begun) >= HEAPS_MIN && !held.id) {
            held = asked;
            atomic_store(&phase, HELD);
            continue;
        }
        struct seccomp_notif_resp answer = {.id = asked.id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        ioctl(poll_for.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
    return NULL;
}

static int numbers(const char *library) {
    alarm(200);
    find_real();
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(run != MAP_FAILED);
    dl_iterate_phdr(note_range, NULL);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t thread, threads[2];
    begin(&thread, NULL, judge_of_numbers, NULL);
    filter();
    open_library(library);
    int count = 0;
    while (atomic_load(&phase) < HELD) {
        if (atomic_load(&begun) < count) continue;
        CHECK(count < HEAPS_MAX);
        begin(&thread, &small, sleeper, NULL);
        count++;
    }
    // The last thread is held. Another takes a number, then the last is refused, and a third asks.
    for (uintptr_t i = 0; i < 2; i++) begin(&threads[i], NULL, late, (void *)(HELD + i));
    while (atomic_load(&begun) < count) sched_yield();
    atomic_store(&phase, REFUSED);
    while (atomic_load(&begun) < count + 2) sched_yield();
    atomic_store(&phase, ALL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("passed");
    fflush(stdout);
    _exit(0);
}

// ---- all refusals ----------------------------------------------------------------------------

static int failures;
enum { LINES = 4 };

// Runs a life in a process of its own. Returns false if it fails.
static bool try(const char *library) {
    for (int i = 0; i < CALLS; i++) atomic_store(&run->counts[i], 0);
    atomic_store(&run->refused, 0);
    atomic_store(&run->is_over, false);
    fflush(stderr);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) whole_life(library);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    bool is_fine = WIFEXITED(status) && WEXITSTATUS(status) == 0 && atomic_load(&run->is_over);
    if (!is_fine) {
        failures++;
        fprintf(stderr, "%s %d, %s, errno %d: status %#x\n", run->nth ? name_of(run->call) : "nothing", run->nth,
                run->goes_on ? "and on" : "once", run->error, status);
    }
    return is_fine;
}

int main(int count, char **arguments) {
    if (count == 3 && strcmp(arguments[2], "numbers") == 0) return numbers(arguments[1]);
    CHECK(count == 5 || count == 9);
    const char *library = arguments[1];
    with_nodes = strcmp(arguments[2], "nodes") == 0;
    int errors = atoi(arguments[3]), most = atoi(arguments[4]);
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(run != MAP_FAILED);
    // Without a refusal: finds the number of occurrences of each call, and the memory occupied at
    // the end.
    run->nth = 0;
    long chunks = 0, addresses = 0;
    int counts[CALLS] = {0};
    for (int i = 0; i < 3; i++) {
        if (!try(library)) return 1;
        if (run->chunks > chunks) chunks = run->chunks;
        if (run->addresses > addresses) addresses = run->addresses;
        for (int call = 0; call < CALLS; call++)
            if (atomic_load(&run->counts[call]) > counts[call]) counts[call] = atomic_load(&run->counts[call]);
    }
    if (count == 5)
        for (int call = 0; call < CALLS; call++)
            if (counts[call]) printf("%s %d\n", name_of(call), counts[call]);
    fflush(stdout);
    // A life mostly waits, so several run at once.
    int line = 0;
    for (int i = 1; i < LINES; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child) continue;
        line = i;
        run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(run != MAP_FAILED);
        break;
    }
    // A heap occupies one and a half megabytes at the end. Two threads may have created one each
    // where one would suffice; on two nodes each of three threads may have two. With guard pages,
    // the number of freed blocks that are kept varies.
    long slack = (getenv("HEARTH_HARDEN") ? 64 : with_nodes ? 8 : 2) << 20;
    int lives = 0;
    for (int call = 0; call < CALLS; call++) {
        for (int error = 0; error < errors; error++) {
            for (int nth = 1; nth <= counts[call] && nth <= most; nth++) {
                for (int goes_on = 0; goes_on < 2; goes_on++) {
                    run->call = call, run->nth = nth, run->error = all_errors[error], run->goes_on = goes_on;
                    if (count == 9 && (strcmp(name_of(call), arguments[5]) || nth != atoi(arguments[6]) ||
                                       run->error != atoi(arguments[7]) || goes_on != !strcmp(arguments[8], "on")))
                        continue;
                    if (lives++ % LINES != line || !try(library)) continue;
                    // Without the key or its value, each thread uses any parked heap: as many extra
                    // heaps as threads that ask at the same time.
                    bool is_homeless = strncmp(name_of(call), "pthread_", strlen("pthread_")) == 0;
                    long more = is_homeless ? 3 * (3 << 19) : 0;
                    bool is_lost = run->chunks > chunks + slack + more || run->addresses > addresses + (8 << 20);
                    // Under a limit, the heap first looks for free addresses; if it cannot unmap
                    // its probe, it keeps part of the limit reserved.
                    bool is_reserved = strcmp(arguments[2], "limited") == 0 && call == SYS_munmap && nth <= 2;
                    if (!is_lost || is_reserved) continue;
                    failures++;
                    fprintf(stderr, "%s %d, %s, errno %d: %ld of %ld in chunks, %ld of %ld of addresses\n",
                            name_of(call), nth, goes_on ? "and on" : "once", run->error, run->chunks, chunks,
                            run->addresses, addresses);
                }
            }
        }
    }
    if (line) _exit(failures ? 1 : 0);
    for (int i = 1; i < LINES; i++) {
        int status;
        CHECK(wait(&status) > 0);
        if (status) failures++;
    }
    printf("%d lives\n", lives);
    if (failures) return 1;
    puts("passed");
    return 0;
}
