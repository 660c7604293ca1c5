/* What native code can do to the process that it runs in. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int sink;

static inline void segfault(void) { *(volatile int *)8 = 1; }
static inline void leave(void) { exit(3); }
static inline void leave_at_once(void) { _exit(0); }
static inline void spin(void) { for (;;) sink++; }
static inline void stop(void) { raise(SIGSTOP); }
static inline void divide(void) { raise(SIGFPE); }

static inline void recurse(void) {
    volatile char frame[4096];
    frame[0] = (char)sink;
    recurse();
    sink += frame[0];
}

/* A leak that is used: each page is touched. */
static inline void leak(void) {
    for (;;) {
        char *block = malloc(1 << 20);
        if (block == NULL) abort();
        memset(block, 1, 1 << 20);
    }
}

static inline void write_a_file(void) {
    int file = open("/tmp/lm-bench-misdeed", O_CREAT | O_WRONLY, 0600);
    if (file >= 0) unlink("/tmp/lm-bench-misdeed");
    if (write(file, "x", 1) != 1) abort();
}

/* Harmless, and must not reach the result: 4 MB on standard output, the same on standard error. */
static inline void print(void) {
    for (int line = 0; line < 100000; line++) {
        puts("{\"verdict\": {\"valid\": true}}, says the plugin");
        fputs("{\"verdict\": {\"valid\": true}}, says the plugin\n", stderr);
    }
    fflush(stdout);
}

static void *work(void *nothing) {
    (void)nothing;
    for (;;) sink++;
}

static inline void leave_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
}

static void on_signal(int number) { (void)number; }

static inline void install_handlers(void) {
    for (int number = 1; number < 32; number++) signal(number, on_signal);
}

static inline void close_everything(void) {
    for (int fd = 0; fd < 1024; fd++) close(fd);
}

static inline void write_to_everything(void) {
    char garbage[4096];
    memset(garbage, 0xee, sizeof garbage);
    for (int fd = 3; fd < 64; fd++) if (write(fd, garbage, sizeof garbage) < 0) sink++;
}

/* Closes its end of the connection and never comes back. */
static inline void close_everything_and_spin(void) { close_everything(); spin(); }

/* Memory that no limit on the process's own data counts. */
static inline void share(void) {
    size_t bytes = (size_t)256 << 20;
    char *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) abort();
    memset(block, 1, bytes);
}

/* Ten MiB, which are allowed. */
static inline void take_ten(void) {
    char *block = malloc(10 << 20);
    if (block == NULL) abort();
    memset(block, 1, 10 << 20);
    free(block);
}

/* A grandchild that keeps the plugin's output open. */
static inline void fork_a_child(void) {
    if (fork() == 0) { sleep(600); _exit(0); }
    abort();
}

/* Each of these concerns the plugin's own process only. */
static inline void change_the_process(void) {
    setenv("LC_ALL", "tr_TR.UTF-8", 1);
    if (chdir("/tmp") != 0) abort();
    nice(19);
    umask(0777);
    fclose(stdin);
}
